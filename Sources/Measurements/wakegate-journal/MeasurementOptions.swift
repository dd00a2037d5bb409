/// What is measured, from the command line.
struct MeasurementOptions {
    static let usage = "[--devices N] [--commits N] [--batch N] [--record-bytes N] [--folder DIR]"

    var devices = 1_000_000
    var commits = 10_000
    var batch = 256
    var recordBytes = 400
    var folder = "/tmp"

    /// - Returns: nil when an option is unknown, or its value makes no sense.
    init?(_ arguments: some Sequence<String>) {
        var rest = Array(arguments)[...]
        while let name = rest.popFirst() {
            guard let value = rest.popFirst() else { return nil }
            if name == "--folder" {
                self.folder = value
                continue
            }
            guard let number = Int(value), 1...100_000_000 ~= number else { return nil }
            switch name {
            case "--devices": self.devices = number
            case "--commits": self.commits = number
            case "--batch": self.batch = number
            case "--record-bytes" where 16...10_000 ~= number: self.recordBytes = number
            default: return nil
            }
        }
    }
}
