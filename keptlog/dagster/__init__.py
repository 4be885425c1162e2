"""keptlog in Dagster: ``orchestration`` says when, ``assets`` what is shown, ``resources`` what is opened.

In the repository the three are folders at its root, and links here lead to them; an installed package has them here for
real. So each has one name everywhere, ``keptlog.dagster.assets``, and none is in the way of a project's own ``assets``
(ADR 25). Everything here needs ``pip install 'keptlog[dagster]'``; nothing outside of it knows Dagster.
"""
