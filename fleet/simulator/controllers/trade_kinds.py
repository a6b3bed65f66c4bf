"""Every trade there is."""

from .trade_dlrover import DlRover
from .trade_elastic import Horovod
from .trade_jobset import JobSets
from .trade_ray import Ray
from .trade_spark import Spark
from .trade_volcano import Volcano
from .trades import Trade

TRADES: tuple[Trade, ...] = (Horovod(), DlRover(), Ray(), JobSets(), Spark(), Volcano())
