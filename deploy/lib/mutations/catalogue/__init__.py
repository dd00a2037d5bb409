"""Every fault there is, part by part."""

from mutations.catalogue import cluster, dispatch, edge, engine, journal, peers, policy, room, tasks
from mutations.mutation import Mutation

MUTATIONS: list[Mutation] = [
    *policy.MUTATIONS,
    *tasks.MUTATIONS,
    *engine.MUTATIONS,
    *dispatch.MUTATIONS,
    *room.MUTATIONS,
    *cluster.MUTATIONS,
    *edge.MUTATIONS,
    *journal.MUTATIONS,
    *peers.MUTATIONS,
]
