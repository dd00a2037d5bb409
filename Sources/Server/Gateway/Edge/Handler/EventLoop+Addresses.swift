import Engine
import HTTPTransport

/// The engine's addresses of a loop's streams.
extension EventLoop {
    func address(_ stream: StreamID) -> StreamAddress { .stream(self.loopStream(stream)) }

    /// The address of a push whose answer is subject to a fault rule.
    func faultedAddress(_ stream: StreamID) -> StreamAddress { .faulted(self.loopStream(stream)) }

    func loopStream(_ stream: StreamID) -> LoopStream {
        LoopStream(
            loop: UInt16(self.index),
            connectionIndex: stream.connection.index,
            connectionGeneration: stream.connection.generation,
            number: stream.number
        )
    }
}

extension StreamID {
    /// Creates the id of the stream that an engine's address on this loop refers to.
    init(_ address: StreamAddress) {
        switch address {
        case .stream(let stream), .faulted(let stream):
            let connection = ConnectionID(index: stream.connectionIndex, generation: stream.connectionGeneration)
            self.init(connection: connection, number: stream.number)
        case .webhook, .webhookReport: preconditionFailure("what is for webhooks goes to no loop")
        }
    }
}
