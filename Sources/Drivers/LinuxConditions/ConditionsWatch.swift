import Glibc

/// Watches the machine: says on what to wait, and reads the conditions when it is time for it.
///
/// The kernel tells at once of links, routes and chargers. Temperatures, the charge, and the power profile change
/// without a word; they are read every `pollMilliseconds`.
///
/// It belongs to one thread. A reading opens some dozens of small files and takes about a millisecond; sensors behind
/// slow firmware may take longer.
package final class ConditionsWatch {
    package static let pollMilliseconds: Int64 = 15_000
    /// The least time between two readings, however much happens.
    package static let pauseMilliseconds: Int64 = 500

    private let folder: SystemFolder
    private let network: any NetworkSource
    private let devices: NetlinkSocket?
    private var buffer = [UInt8](repeating: 0, count: 8192)
    private var readAt: Int64?
    private var hasNews = true
    private var thermalState = ThermalState.nominal

    /// - Parameters:
    ///   - root: `/`, or a folder with `sys` and `var` in it that stands for it.
    ///   - network: where links and routes are read.
    package init(root: String = "/", network: any NetworkSource = KernelNetwork()) {
        self.folder = SystemFolder(root: root)
        self.network = network
        self.devices = NetlinkSocket.deviceEvents()
    }

    /// Descriptors that become readable when there is something to look at.
    package var descriptors: [Int32] {
        [self.network.descriptor, self.devices?.descriptor].compactMap(\.self)
    }

    /// When `conditions` reads next, in milliseconds of the clock that it is called with.
    package var nextAt: Int64 {
        guard let readAt = self.readAt else { return 0 }
        return readAt + (self.hasNews ? Self.pauseMilliseconds : Self.pollMilliseconds)
    }

    /// Takes what the descriptors hold, and the machine's conditions if it is time to read them; nil otherwise.
    package func conditions(now: Int64) -> MachineConditions? {
        if self.network.hasChanged() { self.hasNews = true }
        while let event = self.devices?.receive(into: &self.buffer) {
            if Self.isOfInterest(event) { self.hasNews = true }
        }
        guard now >= self.nextAt else { return nil }
        self.readAt = now
        self.hasNews = false
        var reading = self.folder.read()
        reading.network = self.network.read()
        let conditions = MachineConditions(reading, before: self.thermalState)
        self.thermalState = conditions.thermalState ?? .nominal
        return conditions
    }

    /// Whether an event of the kernel (`change@/devices/...`, then `NAME=value`, each ended by a zero) is of a class
    /// that is read here; an empty one stands for many that were lost.
    package static func isOfInterest(_ event: ArraySlice<UInt8>) -> Bool {
        event.isEmpty
            || event.split(separator: 0).contains { field in
                field.elementsEqual("SUBSYSTEM=power_supply".utf8) || field.elementsEqual("SUBSYSTEM=thermal".utf8)
            }
    }
}
