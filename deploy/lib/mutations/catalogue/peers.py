"""What others rely on: the history, webhooks, and workers that use the library."""

from mutations.mutation import Mutation

MUTATIONS = [
    Mutation(
        "peers.history-durable",
        "the journal lets go of an event when the history has made it durable, and not before",
        "Sources/Gateway/EngineRoom/History/HistoryFeed.swift",
        "self.retention.advance(to: min(self.file.durableSequence, self.position?.sequence ?? .max))",
        "self.retention.advance(to: min(self.file.takenSequence + 1_000_000, self.position?.sequence ?? .max))",
        r"(HistoryTests|GatewayEngineTests)\.",
    ),
    Mutation(
        "peers.history-in-order",
        "the history takes every record once and in order, also when it had no room for some",
        "Sources/Gateway/EngineRoom/History/HistoryFeed.swift",
        "let isNext = self.journal == nil || record.sequence <= self.file.takenSequence + 1",
        "let isNext = self.journal == nil || record.sequence > 0",
        r"(HistoryTests|GatewayEngineTests)\.",
    ),
    Mutation(
        "peers.webhook-rest",
        "a webhook that fails a few times in a row is left alone for a while",
        "Sources/Gateway/Webhooks/WebhookBreaker.swift",
        "case .active where self.failures < Self.failuresMax: return .nothing",
        "case .active where self.failures <= Self.failuresMax: return .nothing",
        r"GatewayWebhookTests\.",
    ),
    Mutation(
        "peers.unknown-kind",
        "a worker does not take a wake of a kind that it does not know for a push",
        "Sources/Pure/WakeFormat/StreamEvent.swift",
        "            guard let wake = members.text(\"wake\") else { return nil }\n            self = .other(wake: wake, kind)\n",
        "            guard let message = WakeMessage(members) else { return nil }\n            self = .push(message)\n",
        r"(WakeFormatTests|WakeWorkerTests)\.",
    ),
    Mutation(
        "peers.kind-said-once",
        "a worker says of a kind it has no handler for that it refuses it, and says so once",
        "Sources/SDK/WakeWorker/Session/RefusedKinds.swift",
        "self.said.count < Self.countMax && self.said.insert(kind).inserted",
        "self.said.count < Self.countMax || self.said.insert(kind).inserted",
        r"WakeWorkerTests\.",
    ),
]
