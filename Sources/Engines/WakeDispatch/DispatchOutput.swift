package import Bytes
package import DeviceEngine

/// What the dispatcher tells workers. Whoever takes it keeps it back until the step is durable.
package protocol DispatchOutput: AnyObject {
    /// A wake for the stream; its content is valid during the call.
    func deliver(_ wake: borrowing LaunchedWake, to stream: StreamAddress)

    /// A wake the stream holds has expired: its worker should stop.
    func expire(_ wake: WakeID, on stream: StreamAddress)

    /// The stream no longer holds a wake it held, however that ended; not said of a stream that ended itself. Of a wake
    /// that has expired `expire` was said before.
    func released(_ wake: WakeID, on stream: StreamAddress)

    /// The stream was asked to end, and holds no wake any more: it is forgotten, and may be ended.
    func drained(_ stream: StreamAddress)
}
