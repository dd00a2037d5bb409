import Engine
import HTTPTransport

/// Conversions of a loop's streams to the addresses that the engine uses for them.
extension EventLoop {
    func address(_ stream: StreamID) -> StreamAddress { .stream(self.loopStream(stream)) }

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
    /// Creates the id of a stream from the engine's address for it. The address must belong to this loop.
    init(_ address: StreamAddress) {
        switch address {
        case .stream(let stream), .faulted(let stream):
            let connection = ConnectionID(index: stream.connectionIndex, generation: stream.connectionGeneration)
            self.init(connection: connection, number: stream.number)
        case .webhook, .webhookReport: preconditionFailure("what is for webhooks goes to no loop")
        }
    }
}
