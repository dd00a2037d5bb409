package import Engine
import Policy
import Storage
import Wire

/// What happened to the devices of a state, device by device.
package final class StateLog {
    /// The most events of one device that are moved; of more the last.
    private static let eventsPerDeviceMax = 262_144

    private let file: HistoryFile
    private let oldest: Instant
    /// The devices by their numbers in the other store, where these are others; nil where they are the same.
    private let numbers: [UInt64: UInt64]?
    /// The devices that anything happened to, as the state numbers them, in the order of these numbers.
    private let devices: [UInt64]

    /// - Parameters:
    ///   - oldest: what happened before is left out.
    ///   - numbers: of what other devices than these have nothing is told.
    init(_ file: HistoryFile, oldest: Instant, numbers: [UInt64: UInt64]?) {
        self.file = file
        self.oldest = oldest
        self.numbers = numbers
        self.devices = file.devices().filter { numbers?[$0] != nil || numbers == nil }.sorted()
    }

    /// The delivery log as the file and the journal have it together.
    ///
    /// - Parameters:
    ///   - recovery: what the journal has.
    ///   - last: what has happened since.
    /// - Throws: when the file is there and cannot be used.
    static func file(
        _ store: GatewayStore,
        key: HashKey,
        _ recovery: EventRecovery,
        _ last: [HistoryEvent]
    ) throws(StoreError) -> HistoryFile {
        guard store.hasHistory else { return self.filled(HistoryFile(path: nil, key: key) { _ in }, recovery, last) }
        let file = store.openHistory(key: key) { _ in }
        guard file.isOpen, file.found?.isNew == false else {
            throw StoreError(
                message: "The delivery log in \(store.folder) cannot be read: \(file.cause ?? "it was set aside"). "
                    + "Move history.sqlite away and import again: all but the delivery log is in the database then."
            )
        }
        return self.filled(file, recovery, last)
    }

    private static func filled(
        _ file: HistoryFile,
        _ recovery: EventRecovery,
        _ last: [HistoryEvent]
    ) -> HistoryFile {
        recovery.compare(with: file.found)
        for record in recovery.takeRecords() where !record.content.isEmpty {
            var events: [HistoryEvent] = []
            record.content.withByteView { content in
                // It was read before.
                try? EventRecord(content).read { events.append($0) }
            }
            file.append(events[...], ofRecord: record.sequence)
        }
        file.append(last[...])
        return file
    }

    /// How many devices anything happened to.
    package var deviceCount: Int { self.devices.count }

    /// What happened to a device, the newest first.
    ///
    /// - Parameter place: of the device, from 0.
    /// - Throws: when the file cannot be read.
    package func events(_ place: Int) throws(StoreError) -> [HistoryEvent] {
        let device = self.devices[place]
        let number = self.numbers?[device] ?? device
        var events: [HistoryEvent] = []
        self.file.visit(device: device, notAfter: .distantFuture) { event in
            guard event.at >= self.oldest, events.count < Self.eventsPerDeviceMax else { return false }
            events.append(number == device ? event : event.moved(to: number))
            return true
        }
        if let cause = self.file.cause {
            throw StoreError(
                message: "The delivery log cannot be read: \(cause). Import again; it goes on where it was."
            )
        }
        return events
    }
}

extension HistoryEvent {
    /// The same under another number of its device.
    fileprivate func moved(to device: UInt64) -> HistoryEvent {
        HistoryEvent(
            device: device,
            at: self.at,
            code: self.code,
            attempt: self.attempt,
            coalesced: self.coalesced,
            apnsID: self.apnsID,
            related: self.related
        ) ?? self
    }
}
