package import Bytes
package import DeviceEngine
package import LaunchPolicy
package import WakeDispatch

/// Keeps what the dispatcher tells workers, in its order.
package final class RecordingOutput: DispatchOutput {
    package enum Event: Hashable, Sendable {
        case delivered(Delivery)
        case expired(WakeID, StreamAddress)
        case released(WakeID, StreamAddress)
        case drained(StreamAddress)
    }

    package private(set) var events: [Event] = []

    package init() {}

    package func deliver(_ wake: borrowing LaunchedWake, to stream: StreamAddress) {
        // What the handle names is gone after the call, and it differs from run to run.
        var push = wake.push
        push.handle = .none
        let delivery = Delivery(
            wake: wake.id,
            stream: stream,
            token: wake.token,
            topic: wake.topic,
            push: push,
            deadline: wake.deadline,
            apnsID: wake.content?.apnsID,
            payload: wake.content?.payload.array ?? []
        )
        self.events.append(.delivered(delivery))
    }

    package func expire(_ wake: WakeID, on stream: StreamAddress) {
        self.events.append(.expired(wake, stream))
    }

    package func released(_ wake: WakeID, on stream: StreamAddress) {
        self.events.append(.released(wake, stream))
    }

    package func drained(_ stream: StreamAddress) {
        self.events.append(.drained(stream))
    }

    /// Takes the events since the last call.
    package func take() -> [Event] {
        defer { self.events.removeAll() }
        return self.events
    }

    /// The wakes delivered since the events were last taken.
    package var deliveries: [Delivery] {
        self.events.compactMap {
            guard case .delivered(let delivery) = $0 else { return nil }
            return delivery
        }
    }

    /// The wakes expired since the events were last taken.
    package var expirations: [WakeID] {
        self.events.compactMap {
            guard case .expired(let wake, _) = $0 else { return nil }
            return wake
        }
    }
}

/// A wake as its worker was told of it.
package struct Delivery: Hashable, Sendable {
    package let wake: WakeID
    package let stream: StreamAddress
    package let token: DeviceToken
    package let topic: String
    package let push: PendingPush
    package let deadline: Instant
    /// nil for an empty wake.
    package let apnsID: APNsID?
    /// Empty for an empty wake.
    package let payload: [UInt8]
}
