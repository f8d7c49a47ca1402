"""``python bench/operator.py``: what the operator takes; see ``operator_figures.py``.

A program's own directory comes first where Python looks for modules, so that this file would take
the place of the standard library's ``operator`` for every program here: then it is that.
"""

if __name__ == "__main__":
    from operator_figures import main

    main()
else:
    from _operator import *  # noqa: F403
    from _operator import __doc__  # noqa: F401
