package import HTTPClient
package import Synchronization

/// Everything that one attempt at a transfer needs to know.
package struct AttemptPlan: Sendable {
    package let id: TransferID
    package let kind: TransferKind
    package let spec: TransferSpec
    /// What has come before.
    package let part: PartFile?
    /// The name of a file for an entity that begins anew.
    package let freshFile: String
    package let bytesMax: Int64
    /// How far attempts before have come: less is no progress.
    package let bytesBefore: Int64
    /// How long no byte may come, in whole seconds.
    package let silenceSecondsMax: Int
    /// True if a success counts although the server has not read the whole file.
    package let acceptsEarlyAnswers: Bool
    package let settings: HTTPClientSettings

    package init(
        id: TransferID,
        kind: TransferKind,
        spec: TransferSpec,
        part: PartFile?,
        freshFile: String,
        bytesMax: Int64,
        bytesBefore: Int64,
        silenceSecondsMax: Int,
        acceptsEarlyAnswers: Bool = false,
        settings: HTTPClientSettings
    ) {
        self.id = id
        self.kind = kind
        self.spec = spec
        self.part = part
        self.freshFile = freshFile
        self.bytesMax = bytesMax
        self.bytesBefore = bytesBefore
        self.silenceSecondsMax = silenceSecondsMax
        self.acceptsEarlyAnswers = acceptsEarlyAnswers
        self.settings = settings
    }
}

/// How far an attempt is, for whoever looks.
package final class AttemptGauge: Sendable {
    package let bytes = Atomic<Int64>(0)
    package let total = Atomic<Int64>(-1)
    package let status = Atomic<Int>(0)
    /// Bytes that were there before.
    package let first = Atomic<Int64>(0)

    package init() {}
}

/// What becomes of an attempt, in this order: `began` at most once or twice, `synced` now and then, and one of the
/// others last.
package enum AttemptNews: Sendable {
    /// An entity has begun, whose bytes go to this file; those of another are needed no more.
    case began(PartFile)
    /// So many bytes of the file are on the disk.
    case synced(file: String, bytes: Int64)
    /// Everything is there: a download's file is whole and on the disk.
    case succeeded(bytes: Int64, status: Int, sha256: String?)
    case failed(TransferFault, hasProgressed: Bool)
}
