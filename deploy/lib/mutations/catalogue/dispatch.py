"""Who gets which wake: slots, turns, streams that name devices, and work that a step may do."""

from mutations.mutation import Mutation

DISPATCHER = "Sources/Engines/WakeDispatch/Dispatcher.swift"
STREAMS = "Sources/Engines/WakeDispatch/StreamTable.swift"
ENDED = "Sources/Engines/WakeDispatch/EndedStreams.swift"
SUBSCRIPTION = "Sources/Engines/WakeDispatch/Subscription.swift"
WORKERS = "Sources/Engines/WakeDispatch/TopicWorkers.swift"
SIMULATION = r"WakeDispatchTests\.SimulationTests"
ALL = r"WakeDispatchTests\."

MUTATIONS = [
    Mutation(
        "dispatch.freed-slot",
        "a slot that a result has freed goes to a device that waits",
        DISPATCHER,
        "            self.streams.answered(subscription)\n            self.slotFreed(subscription)\n",
        "            self.streams.answered(subscription)\n            self.endIfDrained(subscription)\n",
        SIMULATION,
    ),
    Mutation(
        "dispatch.expired-slot",
        "a slot that an expired wake has freed goes to a device that waits",
        DISPATCHER,
        "        if subscription.request.stallsWhenSilent { self.streams.expired(wake, subscription) }\n"
        "        self.slotFreed(subscription)\n",
        "        if subscription.request.stallsWhenSilent { self.streams.expired(wake, subscription) }\n"
        "        self.endIfDrained(subscription)\n",
        SIMULATION,
    ),
    Mutation(
        "dispatch.new-stream",
        "a new stream gets what waits",
        DISPATCHER,
        "self.freed.append(self.streams.insert(address, topic, request))",
        "_ = self.streams.insert(address, topic, request)",
        SIMULATION,
    ),
    Mutation(
        "dispatch.slots",
        "a stream holds no more wakes than it has slots",
        SUBSCRIPTION,
        "self.wakes.count < self.slots",
        "self.wakes.count <= self.slots",
        SIMULATION,
    ),
    Mutation(
        "dispatch.paused",
        "a stream whose peer does not read is sent nothing",
        SUBSCRIPTION,
        "!self.hasEnded && !self.isDraining && !self.isPaused && !self.isStalled",
        "!self.hasEnded && !self.isDraining && !self.isStalled",
        ALL,
    ),
    Mutation(
        "dispatch.draining",
        "a stream whose worker stops is sent nothing new",
        SUBSCRIPTION,
        "!self.hasEnded && !self.isDraining && !self.isPaused && !self.isStalled",
        "!self.hasEnded && !self.isPaused && !self.isStalled",
        SIMULATION,
    ),
    Mutation(
        "dispatch.stalled",
        "a stream that let three wakes expire in a row gets no more until it answers",
        SUBSCRIPTION,
        "self.expiredInARow.count >= Self.expiredInARowMax",
        "self.expiredInARow.count > Self.expiredInARowMax",
        SIMULATION,
    ),
    Mutation(
        "dispatch.bytes",
        "a stream holds only so many bytes of wakes that nobody has answered",
        SUBSCRIPTION,
        "self.bytes >= self.bounds.wakeBytesMax",
        "self.bytes > self.bounds.wakeBytesMax * 2",
        r"WakeDispatchTests\.WakeBytesTests",
    ),
    Mutation(
        "dispatch.kinds",
        "a stream is sent wakes only of the kinds that it asked for",
        SUBSCRIPTION,
        "self.request.kinds.contains(.push) && self.isFree",
        "self.isFree",
        ALL,
    ),
    Mutation(
        "dispatch.rotation",
        "streams of a topic take turns",
        WORKERS,
        "        self.dropFirst()\n        self.rotate(subscription)\n    }",
        "        if !subscription.isFree { self.dropFirst() }\n    }",
        r"WakeDispatchTests\.(FairnessTests|StreamTests)",
    ),
    Mutation(
        "dispatch.devices-in-turn",
        "no device that is always due keeps others of its stream waiting",
        SUBSCRIPTION,
        "defer { self.deviceInTurn = (self.deviceInTurn + 1) % self.request.devices.count }",
        "defer { self.deviceInTurn = (self.deviceInTurn + 0) % self.request.devices.count }",
        ALL,
    ),
    Mutation(
        "dispatch.naming-first",
        "a stream that names a device goes before those that do not",
        STREAMS,
        "        if let naming = self.workers[place].naming(device) { return naming }\n"
        "        return self.workers[place].nextInRotation()\n",
        "        if let next = self.workers[place].nextInRotation() { return next }\n"
        "        return self.workers[place].naming(device)\n",
        SIMULATION,
    ),
    Mutation(
        "dispatch.naming-fewest",
        "of several streams that name a device the one with the fewest wakes goes first",
        "Sources/Engines/WakeDispatch/NamingStreams.swift",
        "return wakes != others ? wakes < others : self.number < other.number",
        "return wakes != others ? wakes > others : self.number < other.number",
        ALL,
    ),
    Mutation(
        "dispatch.stream-lost",
        "the wakes of a stream that ended are lost at once, and launched again",
        ENDED,
        "if !stream.wakes.isEmpty { self.streams.append(stream) }",
        "if stream.wakes.isEmpty { self.streams.append(stream) }",
        SIMULATION,
    ),
    Mutation(
        "dispatch.step-bound",
        "one step launches so many wakes and no more",
        DISPATCHER,
        "            self.takeExpiredWakes()\n            guard self.workLeft > 0 else { return }\n",
        "            self.takeExpiredWakes()\n",
        r"WakeDispatchTests\.StepBoundTests",
    ),
    Mutation(
        "dispatch.at-one-moment",
        "at one moment a launch goes before what comes from outside",
        DISPATCHER,
        "if self.engine.catchUp(device) { self.flow() }",
        "_ = self.engine.catchUp(device)",
        r"WakeDispatchTests\.(AtOneMomentTests|StepBoundTests|ConformanceTests)",
    ),
    Mutation(
        "dispatch.drain",
        "a gateway that ends launches nothing new",
        DISPATCHER,
        "self.isDraining ? nil : self.streams.free(topic, token)",
        "self.streams.free(topic, token)",
        r"(WakeDispatchTests|GatewayEngineTests)",
    ),
    Mutation(
        "dispatch.extension-scope",
        "a stream is drained only for a caller who reaches its topic",
        DISPATCHER,
        "guard let subscription = self.streams[address], isAdmitted(subscription.topic) else { return false }",
        "guard let subscription = self.streams[address] else { return false }",
        r"GatewayEngineTests\.DeviceContractTests",
    ),
]
