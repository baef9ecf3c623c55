"""What all figures share."""

from matplotlib.figure import Figure

from rllib_arrow.reports.style import panel_title


def test_a_panels_title_never_reaches_its_neighbour():
    axes = Figure(figsize=(7, 2)).subplots(1, 3)
    for name in ("DV3 (3 seeds)", "ARROW some long setting=4 and another (3 seeds)"):
        panel_title(axes[0], name)
        title = axes[0]._left_title.get_window_extent()
        assert 0 < title.width <= axes[0].get_window_extent().width + 1
