import Foundation

/// Metrics as a scraper reads them from the text format.
struct MetricsReading {
    struct Sample {
        let name: String
        let labels: [String: String]
        let value: Double
    }

    struct Malformed: Error, CustomStringConvertible {
        let description: String
    }

    /// In the order of their help lines.
    private(set) var names: [String] = []
    private(set) var helps: [String: String] = [:]
    private(set) var kinds: [String: String] = [:]
    private(set) var samples: [Sample] = []

    init(_ text: String) throws {
        guard text.hasSuffix("\n") else { throw Malformed(description: "no newline at the end of \(text.suffix(80))") }
        for line in text.split(separator: "\n") {
            let words = line.split(separator: " ", maxSplits: 3).map(String.init)
            switch words[0] == "#" ? words[1] : "" {
            case "HELP":
                self.names.append(words[2])
                self.helps[words[2]] = words[3]
            case "TYPE": self.kinds[words[2]] = words[3]
            default: try self.samples.append(Self.sample(line))
            }
        }
    }

    /// The value of the only sample of this name with this label, or of the only one at all.
    subscript(name: String, label: String? = nil, value: String = "") -> Double? {
        let found = self.samples.filter { $0.name == name && (label == nil || $0.labels[label ?? ""] == value) }
        return found.count == 1 ? found[0].value : nil
    }

    /// The samples of a metric, those of a histogram's parts among them.
    func samples(of metric: String) -> [Sample] {
        self.samples.filter { sample in
            sample.name == metric || ["_bucket", "_sum", "_count"].contains { sample.name == metric + $0 }
        }
    }

    private static func sample(_ line: Substring) throws -> Sample {
        let pattern = /([a-z_]+)(?:\{(.*)\})? (\S+)/
        guard let match = line.wholeMatch(of: pattern), let value = Double(match.3) else {
            throw Malformed(description: "no sample: \(line)")
        }
        var labels: [String: String] = [:]
        for pair in (match.2 ?? "").split(separator: ",") {
            let parts = pair.split(separator: "=", maxSplits: 1)
            labels[String(parts[0])] = parts[1].trimmingCharacters(in: ["\""])
        }
        return Sample(name: String(match.1), labels: labels, value: value)
    }
}
