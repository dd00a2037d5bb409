/// What is measured, from the command line.
struct MeasurementOptions {
    static let usage = "[--devices N] [--commits N] [--batch N] [--record-bytes N] [--events N] [--folder DIR]"

    var devices = 1_000_000
    var commits = 10_000
    var batch = 256
    var recordBytes = 400
    /// Events of each record that is written, as a push has one to three; 0 for none.
    var events = 1
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
            guard let number = Int(value), 0...100_000_000 ~= number else { return nil }
            if name == "--events", number <= 8 {
                self.events = number
                continue
            }
            guard number > 0 else { return nil }
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
