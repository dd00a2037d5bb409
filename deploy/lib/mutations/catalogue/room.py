"""The engine room: what a commit holds, what leaves when, and what a failed store leaves behind."""

from mutations.mutation import Mutation

ROOM = "Sources/Gateway/EngineRoom"
ENGINE = f"{ROOM}/Engine/EmbeddedGatewayEngine.swift"
START = f"{ROOM}/Engine/EmbeddedStart.swift"
STORED = f"{ROOM}/Engine/StoredGateway.swift"
DESK = f"{ROOM}/Commits/CommitDesk.swift"
REQUESTS = f"{ROOM}/Desks/RequestDesk.swift"
PIPELINE = f"{ROOM}/Commits/CommitPipeline.swift"
PACE = f"{ROOM}/Commits/CommitPace.swift"
NAMED = f"{ROOM}/Exchange/Named.swift"
# The production engine room in virtual time, on media that fail and die.
SIMULATION = r"GatewayEngineTests\.RoomSimulationTests"
ALL = r"GatewayEngineTests\."

MUTATIONS = [
    Mutation(
        "room.released-while-busy",
        "a 200 leaves only when its push is durable",
        DESK,
        "        case .busy: return nil\n",
        "        case .busy:\n            self.release(engine, clock.offset)\n            return nil\n",
        SIMULATION,
    ),
    Mutation(
        "room.released-before-commit",
        "a wake leaves only when its launch is durable",
        PIPELINE,
        "            if !self.group.records.isEmpty { try self.commit() }\n"
        "            self.outlet.release(self.group)\n",
        "            self.outlet.release(self.group)\n"
        "            if !self.group.records.isEmpty { try self.commit() }\n",
        ALL,
    ),
    Mutation(
        "room.event-numbers",
        "what happened is in the commit of what it changed, for a history that lags behind",
        DESK,
        "            self.numbers?.write(self.stage.group.history, to: &self.stage.group.records)\n",
        "            if !engine.hasChanges { "
        "self.numbers?.write(self.stage.group.history, to: &self.stage.group.records) }\n",
        SIMULATION,
    ),
    Mutation(
        "room.clock",
        "the clock is in every commit, so that policy time never goes back",
        DESK,
        "            self.stage.group.records.append(RecordKey(.clock)) { record.store(to: &$0) }\n",
        "            if !engine.hasChanges { "
        "self.stage.group.records.append(RecordKey(.clock)) { record.store(to: &$0) } }\n",
        SIMULATION,
    ),
    Mutation(
        "room.lost-at-start",
        "a start loses the wakes that were in flight, and they are launched again",
        START,
        "        self.engine.loseEveryWake()\n",
        "",
        SIMULATION,
    ),
    Mutation(
        "room.start-is-durable",
        "what a start does is durable before anything is answered",
        START,
        "        try store.commit(beginning)\n",
        "        if beginning.isEmpty { try store.commit(beginning) }\n",
        ALL,
    ),
    Mutation(
        "room.failed-group-refused",
        "every request of a group whose commit failed is refused",
        DESK,
        "        self.refuseEverything(of: failed, error)\n",
        "",
        SIMULATION,
    ),
    Mutation(
        "room.waiting-group-refused",
        "every request that waited behind a commit that failed is refused",
        DESK,
        "        self.refuseEverything(of: self.stage.group, error)\n",
        "",
        SIMULATION,
    ),
    Mutation(
        "room.refused-after-failure",
        "what would change something is refused once the store has failed",
        REQUESTS,
        "case .refused: error = workspace.failure?.error",
        "case .refused: error = nil",
        ALL,
    ),
    Mutation(
        "room.durable-answers",
        "after a failure questions are answered from what is durable",
        STORED,
        "try store.reload { key, content throws(StoreError) in try stored.take(key, content) }",
        "try store.reload { key, content throws(StoreError) in if "
        "key.kind != .device { try stored.take(key, content) } }",
        ALL,
    ),
    Mutation(
        "room.unreadable-answers",
        "when what is durable cannot be read, questions are refused with the cause",
        REQUESTS,
        "case .answeredFromDurableState: error = workspace.failure?.durableError",
        "case .answeredFromDurableState: error = nil",
        ALL,
    ),
    Mutation(
        "room.failure-is-told",
        "the gateway hears that its store has failed",
        ENGINE,
        "        self.onFailure(error)\n",
        "        if self.failure == nil { self.onFailure(error) }\n",
        ALL,
    ),
    Mutation(
        "room.refused-start",
        "a start that is refused leaves the store as it is",
        START,
        "        try self.engine.finishRestoring(now: self.clock.now)\n",
        "        try store?.begin()\n        try self.engine.finishRestoring(now: self.clock.now)\n",
        ALL,
    ),
    Mutation(
        "room.scope-of-devices",
        "a device of a topic beyond the caller's is not there",
        NAMED,
        "guard let device = engine.find(self.name), caller.reaches(engine.identity(device).topic, in: engine) else {",
        "guard let device = engine.find(self.name) else {",
        r"GatewayEngineTests\.DeviceContractTests",
    ),
    Mutation(
        "room.scope-of-wakes",
        "a wake of a topic beyond the caller's is not there",
        NAMED,
        "!caller.reaches(topic, in: engine) else { return self.name }\n        return nil\n",
        "!caller.reaches(topic, in: engine) else { return self.name }\n        return self.name\n",
        r"GatewayEngineTests\.DeviceContractTests",
    ),
    Mutation(
        "room.last-commit",
        "what waits when the gateway ends is made durable",
        ENGINE,
        "            self.commits.waitUntilIdle()\n            self.flush()\n",
        "            self.commits.waitUntilIdle()\n",
        ALL,
    ),
    Mutation(
        "room.refused-pushes-counted",
        "a push that is refused after all is counted as refused",
        f"{ROOM}/Commits/EffectRefusal.swift",
        "if reply.reason == PushReply.accepted { self.pushCount += 1 }",
        "if reply.reason != PushReply.accepted { self.pushCount += 1 }",
        ALL,
    ),
    Mutation(
        "room.dropped-wakes",
        "nothing of what a group had to say is let out when its commit fails: no 200, and no wake",
        DESK,
        "        effects = refusal.refused\n",
        "        effects.append(refusal.refused)\n",
        ALL,
    ),
    Mutation(
        "room.rest-end",
        "the engine is woken at the end of a rest, whatever was let out before",
        PIPELINE,
        "                if now < self.pace.restEnd {\n"
        "                    _ = self.monitor.wait(untilNanoseconds: self.pace.restEnd * 1_000)\n",
        "                if now < self.pace.nextMayBegin {\n"
        "                    _ = self.monitor.wait(untilNanoseconds: self.pace.nextMayBegin * 1_000)\n",
        r"GatewayEngineTests\.CommitPipelineTests",
    ),
    Mutation(
        "room.rest-at-end",
        "what waits in a rest is durable before the gateway ends",
        PIPELINE,
        "            self.pace.endRest()\n",
        "",
        r"GatewayEngineTests\.CommitPipelineTests",
    ),
    Mutation(
        "room.rest-pushes",
        "a rest is over when as many pushes wait as were there before",
        PACE,
        "self.waiting >= self.restPushes ? .min : self.restEnd",
        "self.restEnd",
        r"GatewayEngineTests\.Commit",
    ),
    Mutation(
        "room.rest-given-up",
        "senders that send more without rests have none",
        PACE,
        "        if 4 * rate > 5 * rateWith {\n",
        "        if rate > 1000 * rateWith {\n",
        r"GatewayEngineTests\.CommitPaceTests",
    ),
]
