import Engine
import HTTPTransport

/// What the engine calls the streams of a loop.
extension EventLoop {
    func address(_ stream: StreamID) -> StreamAddress { .stream(self.loopStream(stream)) }

    /// The address of a push on whose answer a fault rule acts.
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
    /// The stream that the engine means by an address of this loop.
    init(_ address: StreamAddress) {
        switch address {
        case .stream(let stream), .faulted(let stream):
            let connection = ConnectionID(index: stream.connectionIndex, generation: stream.connectionGeneration)
            self.init(connection: connection, number: stream.number)
        case .webhook, .webhookReport: preconditionFailure("what is for webhooks goes to no loop")
        }
    }
}
