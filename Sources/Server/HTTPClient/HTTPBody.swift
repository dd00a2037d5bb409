package import Synchronization
package import Wire

/// Takes the body of an answer as it comes, on the thread of the client and while libcurl waits.
package protocol HTTPBodySink: AnyObject, Sendable {
    /// The head of the answer has come.
    ///
    /// - Returns: false to end the exchange.
    func headReceived(_ response: HTTPResponse) -> Bool

    /// The next bytes of the body have come; they are valid during the call.
    ///
    /// - Returns: false to end the exchange.
    func bodyReceived(_ bytes: ByteView) -> Bool
}

/// A file that is the body of a request. Whoever gives it keeps it open until the request has ended.
package final class HTTPFileBody: Sendable {
    package let descriptor: Int32
    /// How many bytes are sent; a file that has fewer ends the exchange.
    package let byteCount: Int64
    /// Called on the client's thread with how many bytes libcurl has taken of it.
    package let onProgress: @Sendable (Int64) -> Void
    /// Whether the file had fewer bytes than were announced, or could not be read.
    package let isCut = Atomic<Bool>(false)

    package init(descriptor: Int32, byteCount: Int64, onProgress: @escaping @Sendable (Int64) -> Void) {
        self.descriptor = descriptor
        self.byteCount = byteCount
        self.onProgress = onProgress
    }
}
