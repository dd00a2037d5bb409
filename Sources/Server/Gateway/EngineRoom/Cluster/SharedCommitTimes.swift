/// How long commits took, where the desks that show it find it; one thread uses it.
final class SharedCommitTimes {
    var value = CommitTimes()

    init() {}
}
