/// What `wakegate size` shows.
package enum SizeText {
    /// The size as lines, each a name and a value.
    package static func text(_ size: ClusterSize) -> String {
        let databases = size.databases
        var lines = [
            ("load", self.load(size.load, launches: size.launches)),
            ("gateways", "\(size.gateways) of \(ClusterSize.gatewayCores) cores, one of which may be gone"),
        ]
        if databases > 1 {
            let limits = size.limits.map(self.words).joined(separator: ", ")
            lines.append(("one primary", "is not enough: \(limits)"))
            lines.append(("databases", "\(databases), each with the devices of a part of all tokens; each of them:"))
        }
        let part = size.part(of: databases)
        lines += [
            ("nodes", "3 of \(part.cores) cores and \(self.bytes(part.memoryBytes)) of memory"),
            (
                "connections",
                "\(size.connections): max_connections, of which a gateway has "
                    + "\(ClusterSize.connectionsPerGateway)"
            ),
            ("devices", self.bytes(part.deviceBytes)),
            ("delivery log", self.bytes(part.historyBytes)),
            (
                "WAL",
                "\(self.bytes(part.logBytes)) a second, \(self.bytes(part.logBytes * 86_400)) a day; up to "
                    + "\(self.bytes(part.logDiskBytes)) on the disk"
            ),
            ("disk", "\(self.bytes(part.diskBytes)) a node, a third of which stays free"),
        ]
        let width = (lines.map(\.0.count).max() ?? 0) + 2
        return lines.map { name, value in
            name + String(repeating: " ", count: width - name.count) + value + "\n"
        }.joined()
    }

    private static func load(_ load: ClusterSize.Load, launches: Double) -> String {
        "\(self.count(load.devices)) devices, \(self.count(load.rate)) pushes of \(self.count(load.payload)) bytes and "
            + "at most \(self.count(launches)) launches a second, history of \(self.count(load.history)) d"
    }

    private static func words(_ limit: ClusterSize.Limit) -> String {
        switch limit {
        case .processors: "its cores"
        case .log: "its write-ahead log"
        case .devices: "the size of its tables"
        }
    }

    /// A whole number, its thousands apart.
    package static func count(_ number: Double) -> String {
        var digits = Array(String(Int(number.rounded())))
        for place in stride(from: digits.count - 3, to: 0, by: -3) { digits.insert(",", at: place) }
        return String(digits)
    }

    /// Bytes in a unit of a thousand, with two digits or more that count.
    package static func bytes(_ bytes: Double) -> String {
        var value = bytes
        var unit = 0
        let units = ["B", "KB", "MB", "GB", "TB", "PB"]
        while value >= 1000, unit + 1 < units.count {
            value /= 1000
            unit += 1
        }
        let tenths = Int((value * 10).rounded())
        guard value < 10, tenths % 10 != 0, unit > 0 else { return "\(Int(value.rounded())) \(units[unit])" }
        return "\(tenths / 10).\(tenths % 10) \(units[unit])"
    }
}
