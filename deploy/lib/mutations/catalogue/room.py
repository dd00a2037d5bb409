"""The engine room: what a commit holds, what leaves when, and what a failed store leaves behind."""

from mutations.mutation import Mutation

CORE = "Sources/Gateway/EngineRoom/Engine/EngineCore.swift"
COMMANDS = "Sources/Gateway/EngineRoom/Engine/EngineCore+Commands.swift"
PIPELINE = "Sources/Gateway/EngineRoom/Engine/CommitPipeline.swift"
NAMED = "Sources/Gateway/EngineRoom/Engine/Named.swift"
# The production engine room in virtual time, on media that fail and die.
SIMULATION = r"GatewayEngineTests\.RoomSimulationTests"
ALL = r"GatewayEngineTests\."

MUTATIONS = [
    Mutation(
        "room.released-while-busy",
        "a 200 leaves only when its push is durable",
        CORE,
        "case .busy: break",
        "case .busy: self.release()",
        SIMULATION,
    ),
    Mutation(
        "room.released-before-commit",
        "a wake leaves only when its launch is durable",
        PIPELINE,
        "                if !self.group.records.isEmpty { try self.commit() }\n                self.outlet.release(self.group)\n",
        "                self.outlet.release(self.group)\n                if !self.group.records.isEmpty { try self.commit() }\n",
        ALL,
    ),
    Mutation(
        "room.event-numbers",
        "what happened is in the commit of what it changed, for a history that lags behind",
        CORE,
        "        self.takeHistory()\n        self.numbers?.write(self.stage.group.history, to: &records)\n",
        "        self.takeHistory()\n        if !records.isEmpty { self.numbers?.write(self.stage.group.history, to: &records) }\n",
        SIMULATION,
    ),
    Mutation(
        "room.clock",
        "the clock is in every commit, so that policy time never goes back",
        CORE,
        "            self.stage.group.records.append(RecordKey(.clock)) { clock.store(to: &$0) }\n            self.engine.takeStep",
        "            if !self.engine.hasChanges { self.stage.group.records.append(RecordKey(.clock)) { clock.store(to: &$0) } }\n"
        "            self.engine.takeStep",
        SIMULATION,
    ),
    Mutation(
        "room.lost-at-start",
        "a start loses the wakes that were in flight, and they are launched again",
        CORE,
        "        self.engine.loseEveryWake()\n",
        "",
        SIMULATION,
    ),
    Mutation(
        "room.start-is-durable",
        "what a start does is durable before anything is answered",
        CORE,
        "            try store.commit(beginning)\n",
        "            if beginning.isEmpty { try store.commit(beginning) }\n",
        ALL,
    ),
    Mutation(
        "room.failed-group-refused",
        "every request of a group whose commit failed is refused",
        CORE,
        "        self.refuse(failed)\n",
        "",
        SIMULATION,
    ),
    Mutation(
        "room.waiting-group-refused",
        "every request that waited behind a commit that failed is refused",
        CORE,
        "        self.refuse(self.stage.group)\n",
        "",
        SIMULATION,
    ),
    Mutation(
        "room.refused-after-failure",
        "what would change something is refused once the store has failed",
        COMMANDS,
        "case .refused: self.answer(request.reply, .refused(.storeFailed(self.failure?.error)))",
        "case .refused: self.perform(request)",
        ALL,
    ),
    Mutation(
        "room.durable-answers",
        "after a failure questions are answered from what is durable",
        CORE,
        "try store.reload { key, content throws(StoreError) in try stored.take(key, content) }",
        "try store.reload { key, content throws(StoreError) in if key.kind != .device { try stored.take(key, content) } }",
        ALL,
    ),
    Mutation(
        "room.unreadable-answers",
        "when what is durable cannot be read, questions are refused with the cause",
        COMMANDS,
        "if let error = self.failure?.durableError {",
        "if self.stage.group.isEmpty, self.failure == nil, let error = self.failure?.durableError {",
        ALL,
    ),
    Mutation(
        "room.failure-is-told",
        "the gateway hears that its store has failed",
        CORE,
        "        self.release()\n        self.onFailure(error)\n",
        "        self.release()\n",
        ALL,
    ),
    Mutation(
        "room.refused-start",
        "a start that is refused leaves the store as it is",
        CORE,
        "        try self.engine.finishRestoring(now: now)\n",
        "        try store?.begin()\n        try self.engine.finishRestoring(now: now)\n",
        ALL,
    ),
    Mutation(
        "room.scope-of-devices",
        "a device of a topic beyond the caller's is not there",
        NAMED,
        "guard let device = engine.find(self.name), caller.reaches(engine.identity(device).topic, in: engine) else {",
        "guard let device = engine.find(self.name) else {",
        r"GatewayEngineTests\.CallerReachTests",
    ),
    Mutation(
        "room.scope-of-wakes",
        "a wake of a topic beyond the caller's is not there",
        NAMED,
        "!caller.reaches(topic, in: engine) else { return self.name }\n        return nil\n",
        "!caller.reaches(topic, in: engine) else { return self.name }\n        return self.name\n",
        r"GatewayEngineTests\.CallerReachTests",
    ),
    Mutation(
        "room.last-commit",
        "what waits when the gateway ends is made durable",
        CORE,
        "            _ = committer.waitUntilIdle()\n            self.flush()\n",
        "            _ = committer.waitUntilIdle()\n",
        ALL,
    ),
    Mutation(
        "room.refused-pushes-counted",
        "a push that is refused after all is counted as refused",
        "Sources/Gateway/EngineRoom/Engine/EffectRefusal.swift",
        "if reply.reason == PushReply.accepted { self.pushCount += 1 }",
        "if reply.reason != PushReply.accepted { self.pushCount += 1 }",
        ALL,
    ),
    Mutation(
        "room.dropped-wakes",
        "nothing of what a group had to say is let out when its commit fails: no 200, and no wake",
        CORE,
        "        effects = refusal.refused\n",
        "        effects.append(refusal.refused)\n",
        ALL,
    ),
]
