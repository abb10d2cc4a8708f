"""How fast it is: each figure beside its peers, measured in one run.

    envs/toolkit/bin/python -m bench NAME...|all [--quick]

One module a figure; each has a ``TITLE`` and ``measure(effort)``, which returns a ``Figure``:

=========  ====================================================================================
wire       one observation out and one chunk of actions back, beside a raw socket and openpi
stack      environment steps a second where simulator and model cost nothing, beside vla-eval
claims     a claim and its completion, beside a bare mkdir and create, and labtasker
takeover   how soon somebody plays the episode of a worker that was killed, beside labtasker
overhead   a real episode with cameras, beside a plain loop in one process
makespan   a long-tailed run of 40 tasks, beside the least that it could take
servers    several simulators on one model server, beside one
sealing    100,000 episodes sealed, and resumed when all are played, beside labtasker
rows       a million rows become tables, beside a bare query
cli        ``--help`` and the status of 10,000 episodes
video      what a video costs the episode that is filmed, beside imageio
=========  ====================================================================================

What is compared is measured in turns, several times, and ratios are taken turn by turn, so they
hold on a busy machine, too. Absolute figures do not. Peers come from ``scripts/setup.sh peers``;
without them what needs one is left out, and the figure says so. ``bench/zero`` is the simulator and
the policy that cost nothing.
"""
