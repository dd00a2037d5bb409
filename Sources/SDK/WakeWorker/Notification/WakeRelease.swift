/// An error that gives a wake back: a handler throws it when its work could not begin.
///
/// The wake is lost, which costs its push or task no attempt, and another worker gets it if one is free. Throw it only
/// before anything was done. A gateway gives a worker no more wakes after three in a row that it gave back; the worker
/// subscribes again after a wait of up to a minute.
///
/// ```swift
/// try await worker.run { notification in
///     guard let model = try? loadModel() else { throw WakeRelease("the model cannot be loaded") }
///     return try await model.handle(notification) ? .newData : .noData
/// }
/// ```
public struct WakeRelease: Error, Hashable, Sendable, CustomStringConvertible {
    /// The most bytes of a reason; the rest of a longer one is left out.
    public static let reasonBytesMax = 256

    /// Why the work could not begin. Operators see it.
    public let reason: String

    /// Makes the error.
    ///
    /// - Parameter reason: why the work could not begin; it must hold no secret.
    public init(_ reason: String) {
        var kept = reason
        while kept.utf8.count > Self.reasonBytesMax { kept.removeLast() }
        self.reason = kept
    }

    /// The reason.
    public var description: String { self.reason }
}
