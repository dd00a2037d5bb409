/// What an operator may choose about the checks of a push.
package struct PushRules: Hashable, Sendable {
    /// Refuse a push of type background whose priority is 10, which is also the priority of one that names none.
    ///
    /// Apple's documentation calls it an error; APNs accepts it.
    package var strictBackgroundPriority: Bool

    package init(strictBackgroundPriority: Bool = false) {
        self.strictBackgroundPriority = strictBackgroundPriority
    }
}
