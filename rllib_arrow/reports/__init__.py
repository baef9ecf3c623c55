"""Tables, figures and a page from the evaluations of runs."""

from rllib_arrow.reports.terminal import forgetting_table
from rllib_arrow.reports.write import write_report

__all__ = ["forgetting_table", "write_report"]
