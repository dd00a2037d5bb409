/// What a handler is registered for: see ``WakeWorker/backgroundTask(_:action:)``.
///
/// An identifier is 1 to 255 letters, digits, full stops, hyphens and underscores. One that ends in `.*` is a pattern:
/// `com.example.export.*` stands for every identifier that begins with `com.example.export.` and goes on. Of several
/// patterns that fit, the longest counts, and an identifier of its own counts before all of them.
///
/// ```swift
/// try worker.backgroundTask(.appRefresh("com.example.app.refresh")) { context in try await refresh() }
/// ```
public struct BackgroundTask: Hashable, Sendable, CustomStringConvertible {
    /// The kind that is meant.
    public let kind: BackgroundTaskKind
    /// The identifier or pattern; of a `urlSession` the session's name, or a pattern for names.
    public let identifier: String

    /// A short task, such as fetching what is new.
    ///
    /// - Parameter identifier: the identifier that its requests have, or a pattern.
    public static func appRefresh(_ identifier: String) -> BackgroundTask {
        BackgroundTask(kind: .appRefresh, identifier: identifier)
    }

    /// A task of minutes, for when the device is idle.
    ///
    /// - Parameter identifier: the identifier that its requests have, or a pattern.
    public static func processing(_ identifier: String) -> BackgroundTask {
        BackgroundTask(kind: .processing, identifier: identifier)
    }

    /// A task that a person started and waits for, which has time as long as it makes progress.
    ///
    /// - Parameter identifier: the identifier that its requests have, or a pattern.
    public static func continued(_ identifier: String) -> BackgroundTask {
        BackgroundTask(kind: .continued, identifier: identifier)
    }

    /// Transfers of a background session that have finished.
    ///
    /// - Parameter name: the session's name, or a pattern.
    public static func urlSession(_ name: String) -> BackgroundTask {
        BackgroundTask(kind: .urlSession, identifier: name)
    }

    /// The kind and the identifier.
    public var description: String { "\(self.kind.rawValue) \(self.identifier)" }

    /// How it is found.
    var name: BackgroundTaskName {
        BackgroundTaskName(self.identifier, isSession: self.kind == .urlSession)
    }
}

/// What kinds of background work there are.
public enum BackgroundTaskKind: String, Hashable, Sendable, CaseIterable {
    /// A short task, such as fetching what is new.
    case appRefresh
    /// A task of minutes, for when the device is idle.
    case processing
    /// A task that a person started and waits for.
    case continued
    /// The transfers of a background session that have finished.
    case urlSession
}

/// What a worker's machine has that some background tasks need; such a task goes to no other worker.
public struct BackgroundTaskResources: OptionSet, Hashable, Sendable {
    /// A graphics processor.
    public static let gpu = BackgroundTaskResources(rawValue: 1)

    /// One bit for each.
    public let rawValue: Int

    /// A set of the resources whose bits are set.
    public init(rawValue: Int) {
        self.rawValue = rawValue
    }

    /// As the gateway calls them.
    var names: [String] { self.contains(.gpu) ? ["gpu"] : [] }

    /// The resources of these names that this version knows.
    init(names: [String]) {
        self = names.contains("gpu") ? .gpu : []
    }
}
