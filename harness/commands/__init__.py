"""The subcommands of ``rollpool``, one a module: ``add_arguments(parser)`` and ``run(arguments)``.

``add_arguments`` runs for ``--help`` too, so what takes time to import is imported in ``run``.
"""
