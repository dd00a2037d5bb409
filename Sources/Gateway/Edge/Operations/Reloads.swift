package import Answers
package import WakeDispatch

/// What has the configuration read again for an operator who asks for that over HTTP.
package protocol Reloads: Sendable {
    /// Begins to reload; the stream is answered once the new configuration is in force, or with why it is not.
    ///
    /// - Throws: when there is nothing to read again.
    func start(reply: StreamAddress) throws(APIError)
}
