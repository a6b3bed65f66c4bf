"""The list of all operators."""

from simulator.operators.dlrover import DlRover
from simulator.operators.elastic import Horovod
from simulator.operators.jobset import JobSets
from simulator.operators.operator import Operator
from simulator.operators.ray import Ray
from simulator.operators.spark import Spark
from simulator.operators.volcano import Volcano

OPERATORS: tuple[Operator, ...] = (Horovod(), DlRover(), Ray(), JobSets(), Spark(), Volcano())
