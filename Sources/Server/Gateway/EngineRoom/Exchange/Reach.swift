package import Engine
package import Policy
package import Wire

/// An engine as one caller may use it: what is of a topic beyond theirs is not there.
package struct Reach {
    package let workspace: Workspace
    package let caller: Caller
    /// The sources of answers besides devices.
    package let room: RoomState

    package init(_ workspace: Workspace, _ caller: Caller, _ room: RoomState) {
        self.workspace = workspace
        self.caller = caller
        self.room = room
    }

    package var engine: EmbeddedEngine { self.workspace.engine }
    package var dispatcher: Dispatcher { self.workspace.dispatcher }

    /// The moment of the wall clock, in milliseconds since 1970.
    package func wall(_ moment: Instant) -> Int64 { self.workspace.offset.wall(moment) }

    /// The device with this token.
    func device(_ name: Named<DeviceToken>) throws(APIError) -> ReachedDevice {
        guard let device = name.find(in: self.engine, for: self.caller) else { throw .unknownDevice }
        return device
    }

    /// The device, unless it was removed.
    package func registered(_ device: ReachedDevice) throws(APIError) -> DeviceIndex {
        guard self.engine.identity(device.index).isRegistered else {
            throw .unregistered(at: self.wall(self.engine.snapshot(device.index).registrationChangedAt))
        }
        return device.index
    }

    /// The topic of this name.
    func topic(_ name: [UInt8]) throws(APIError) -> TopicIndex {
        guard let topic = name.withByteView({ self.engine.findTopic($0) }),
            self.caller.reaches(topic, in: self.engine)
        else { throw .unknownTopic }
        return topic
    }

    /// The wake of this id, unless it is of a topic beyond the caller's; the engine may know none.
    func wake(_ name: Named<WakeID>) throws(APIError) -> WakeID {
        guard let wake = name.find(in: self.engine, for: self.caller) else { throw .unknownWake }
        return wake
    }
}

/// The sources of answers besides devices: counters, webhooks, and whether the gateway is shutting down.
package final class RoomState {
    let records: GatewayRecords
    let limits: LimitCounts
    let commitTimes: () -> CommitTimes
    /// The last reported state of each webhook, by topic.
    var webhooks: [String: WebhookStatus] = [:]
    package var isDraining = false

    init(_ records: GatewayRecords, _ limits: LimitCounts, commitTimes: @escaping () -> CommitTimes) {
        self.records = records
        self.limits = limits
        self.commitTimes = commitTimes
    }
}

/// A list that passes over every topic or every device.
package struct LongList {
    /// The most devices that a step looks at.
    static let placesMax = 32_768

    /// Searches on for what is listed; true when the search has ended.
    let search: (Workspace) -> Bool
    /// Writes the members of the answer.
    let write: (Workspace, inout JSONWriter) -> Void

    init(
        search: @escaping (Workspace) -> Bool = { _ in true },
        write: @escaping (Workspace, inout JSONWriter) -> Void
    ) {
        self.search = search
        self.write = write
    }
}
