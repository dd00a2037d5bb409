/// What handling a wake came to, as `UIBackgroundFetchResult` says it on iOS.
public enum BackgroundFetchResult: String, Hashable, Sendable, CaseIterable {
    /// There was new data, and it was fetched. The device's penalty for wakes that took too long is taken back.
    case newData
    /// There was nothing new.
    case noData
    /// Something went wrong: the push is launched again later, as long as it has attempts left.
    case failed
}
