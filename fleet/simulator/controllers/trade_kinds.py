"""Every trade there is."""

from .trade_elastic import DlRover, Horovod
from .trades import Trade

TRADES: tuple[Trade, ...] = (Horovod(), DlRover())
