package import Bytes
package import DeviceEngine
import LaunchPolicy

/// The delivery log as tables: what happened to a device in one transaction is one row of bytes.
package enum EventTables {
    /// The tables as version 1 of the schema makes them.
    static let statements = [
        """
        CREATE TABLE wakegate.event (
            device bigint NOT NULL,
            id bigserial,
            at bigint NOT NULL,
            body bytea NOT NULL)
        WITH (autovacuum_vacuum_insert_scale_factor = 0.1)
        """,
        "CREATE INDEX event_device ON wakegate.event (device, id)",
        "CREATE INDEX event_at ON wakegate.event (at)",
        """
        CREATE TABLE wakegate.push (apns uuid NOT NULL, device bigint NOT NULL, at bigint NOT NULL)
        WITH (autovacuum_vacuum_insert_scale_factor = 0.1)
        """,
        "CREATE INDEX push_apns ON wakegate.push (apns)",
        "CREATE INDEX push_at ON wakegate.push USING brin (at)",
    ]

    /// The most events of one row: what `EventRecord` writes of as many is one record.
    static let eventsPerRow = 512

    /// What happened to one device in one transaction, or a part of that.
    package struct Row {
        /// The number the history knows the device by.
        package let device: Int64
        /// When the first of it happened, in policy time.
        package let at: Int64
        package fileprivate(set) var events: [HistoryEvent]

        /// The events as `EventRecord` writes them.
        package func body() -> [UInt8] {
            var buffer = ByteBuffer()
            _ = EventRecord.write(self.events, from: 0, sequence: 1, keyMark: 0, to: &buffer)
            return buffer.view.array
        }
    }

    /// The events by device, each device's in their order; devices in the order of their first events.
    package static func rows(_ events: [HistoryEvent]) -> [Row] {
        var places: [UInt64: Int] = [:]
        var rows: [Row] = []
        for event in events {
            if let place = places[event.device], rows[place].events.count < Self.eventsPerRow {
                rows[place].events.append(event)
            } else {
                places[event.device] = rows.count
                let row = Row(
                    device: Int64(bitPattern: event.device),
                    at: event.at.milliseconds,
                    events: [event]
                )
                rows.append(row)
            }
        }
        return rows
    }

    /// The pushes that were answered: identifier, device and moment, the identifier without the case of its letters.
    package static func pushes(_ events: [HistoryEvent]) -> [(apns: APNsID, device: Int64, at: Int64)] {
        events.compactMap { event in
            guard case .push = event.kind, let apns = event.apnsID else { return nil }
            return (apns, Int64(bitPattern: event.device), event.at.milliseconds)
        }
    }
}
