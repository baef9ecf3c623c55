"""Which task is on, and when."""

from rllib_arrow.curriculum.callback import PlateauScheduler, TaskScheduler
from rllib_arrow.curriculum.schedule import Curriculum

__all__ = ["Curriculum", "PlateauScheduler", "TaskScheduler"]
