/// What becomes of the streams that are open when a connection is told to go away.
package enum StreamsInFlight: Hashable, Sendable {
    /// They are answered, and then the connection ends.
    case finished
    /// The same, and the GOAWAY frame leaves behind their answers: some clients read nothing more of any stream once
    /// they have seen one. Requests that come meanwhile are taken and answered as well.
    case answeredFirst
    /// The one of this number and those opened after it come to nothing, which their client is told: it may ask again
    /// elsewhere. Older ones are answered.
    case refused(from: Int32)
    /// The connection ends with the GOAWAY frame, and their client cannot know what became of them.
    case dropped
}
