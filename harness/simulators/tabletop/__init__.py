"""``tabletop``: the built-in benchmark, two arms and four furnished scenes from primitives alone.

Layers, each importing only those before it: ``bodies`` (plain data) <- ``builders`` <-
``kinematics``, ``robot`` <- ``things``, ``scenes`` <- ``world`` <- ``collisions``, ``obstacles``,
``expert``, ``skills`` <- ``task``, ``tasks`` <- ``layout`` <- ``adapter``. ``looks``, ``cameras``
and ``shaders`` make the pictures and are imported only where there is a renderer.
"""
