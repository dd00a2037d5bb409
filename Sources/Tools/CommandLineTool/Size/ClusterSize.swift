import Glibc

/// How large a database and its gateways are to be, for so many devices and pushes; pure arithmetic on
/// `MeasuredCosts`.
package struct ClusterSize: Hashable, Sendable {
    /// What is asked for.
    package struct Load: Hashable, Sendable {
        package var devices: Double
        /// Pushes a second, at the peak.
        package var rate: Double
        /// Bytes of a payload.
        package var payload: Double
        /// Days of the delivery log.
        package var history: Double

        package init(devices: Double, rate: Double, payload: Double = 200, history: Double = 7) {
            self.devices = devices
            self.rate = rate
            self.payload = payload
            self.history = history
        }
    }

    /// What one primary has no more of.
    package enum Limit: String, CaseIterable, Hashable, Sendable {
        case processors, log, devices
    }

    package let load: Load
    /// Launches a second, at the most: a device has one in 15 minutes, and no more than it has pushes.
    package let launches: Double

    package init(_ load: Load) {
        self.load = load
        self.launches = min(load.rate, load.devices / 900)
    }

    // MARK: Gateways

    /// Gateways of `gatewayCores` cores: two for the load when one is gone, or more.
    package var gateways: Int {
        let each = MeasuredCosts.pushesPerGatewayCore * MeasuredCosts.planned * Double(Self.gatewayCores)
        return max(1, Int((self.load.rate / each).rounded(.up))) + 1
    }

    /// A gateway decides on one thread, beside which others read, write and encrypt.
    package static let gatewayCores = 4

    /// Connections of all gateways and operators to the primary.
    package var connections: Int { self.gateways * Self.connectionsPerGateway + 20 }

    /// 8 that commit, one that controls, one that shares topics and notices, one that reads for questions, and up to 2
    /// that read the delivery log or check.
    package static let connectionsPerGateway = 13

    // MARK: The database

    /// Cores of each node.
    package var cores: Int {
        let push = MeasuredCosts.databaseMicrosecondsPerPush * self.load.rate
        let launch = MeasuredCosts.databaseMicrosecondsPerLaunch * self.launches
        return max(2, Int(((push + launch) / 1_000_000 / MeasuredCosts.planned).rounded(.up)))
    }

    /// Bytes of the devices' tables and their indexes.
    package var deviceBytes: Double {
        let row = self.rowBytes / MeasuredCosts.fillFactor * MeasuredCosts.deviceGrowth
        return self.load.devices * (row + MeasuredCosts.deviceIndexBytes + MeasuredCosts.dueBytes)
            + self.launches * MeasuredCosts.wakeSeconds * MeasuredCosts.wakeBytes
    }

    /// Bytes of the delivery log: an event for a push, and one each for a launch and its result.
    package var historyBytes: Double {
        let push = MeasuredCosts.eventBytes + MeasuredCosts.pushBytes
        let events = self.load.rate * push + self.launches * 2 * MeasuredCosts.eventBytes
        return events * self.load.history * 86_400
    }

    /// Bytes of write-ahead log a second.
    package var logBytes: Double {
        let push =
            MeasuredCosts.logBytesPerPush + self.load.payload
            + self.wholePages * MeasuredCosts.logBytesPerPage
        return self.load.rate * push + self.launches * MeasuredCosts.logBytesPerLaunch
    }

    /// Pages that a push is the first to write to since the last checkpoint, on average: all, where the devices are
    /// many and the pushes few; next to none where the same pages are written again and again.
    private var wholePages: Double {
        let pages = (self.deviceBytes + self.load.devices * MeasuredCosts.pushBytes) / MeasuredCosts.pageBytes
        let writes = self.load.rate * MeasuredCosts.checkpointSeconds * MeasuredCosts.pagesPerPush
        guard pages > 0, writes > 0 else { return 0 }
        return pages * (1 - exp(-writes / pages)) / writes * MeasuredCosts.pagesPerPush
    }

    /// Bytes of write-ahead log that lie on the disk, at the most: those of two checkpoints and a half.
    package var logDiskBytes: Double { max(2_000_000_000, self.logBytes * MeasuredCosts.checkpointSeconds * 2.5) }

    /// Bytes of each node's disk, of which a third stays free.
    package var diskBytes: Double { (self.deviceBytes + self.historyBytes + self.logDiskBytes) * 1.5 }

    /// Bytes of memory in which what is written all the time fits: a tenth of the devices, and the indexes.
    package var memoryBytes: Double {
        let indexes = self.load.devices * (MeasuredCosts.deviceIndexBytes + 172)
        return max(4_000_000_000, (self.deviceBytes * 0.1 + indexes) * 2)
    }

    private var rowBytes: Double { MeasuredCosts.deviceBytes + self.load.payload }

    // MARK: Where one primary ends

    /// What one primary has too little of; empty when one does.
    package var limits: [Limit] {
        let rows = MeasuredCosts.rowsPerSecondOnTwoCores / 2 * MeasuredCosts.primaryCores * MeasuredCosts.planned
        var limits: [Limit] = []
        if Double(self.cores) > MeasuredCosts.primaryCores || self.load.rate + self.launches * 2 > rows {
            limits.append(.processors)
        }
        if self.logBytes > MeasuredCosts.logBytesPerSecondMax { limits.append(.log) }
        if self.load.devices > MeasuredCosts.devicesMax { limits.append(.devices) }
        return limits
    }

    /// Into how many databases the devices would be divided by their tokens.
    package var databases: Int {
        var count = 1
        while count < 1 << 20, !self.part(of: count).limits.isEmpty { count *= 2 }
        return count
    }

    /// The size of one of `databases` that have an equal part of the devices each.
    package func part(of databases: Int) -> ClusterSize {
        var part = self.load
        part.devices /= Double(databases)
        part.rate /= Double(databases)
        return ClusterSize(part)
    }
}
