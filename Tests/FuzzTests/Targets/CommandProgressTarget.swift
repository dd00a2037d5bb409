import CommandLineTool
import WakeWorker
import Wire

/// The text that a command writes to its progress descriptor: lines of any length, in pieces of any size.
enum CommandProgressTarget {
    static func check(_ input: ByteView) throws(BrokenPromise) {
        let bytes = input.array
        let expected = self.expected(bytes)
        for pieceBytes in [1, 7, max(1, bytes.count)] {
            let found = self.reading(bytes, pieceBytes: pieceBytes)
            try promise(found.newest == expected.newest, "in pieces of \(pieceBytes) the newest is another")
            try promise(found.fault == expected.fault, "in pieces of \(pieceBytes) the first fault is another")
        }
        if let fault = expected.fault {
            try promise(fault.count <= ProgressLines.lineBytesMax, "more of a line is kept than may be")
        }
        if let progress = expected.newest { try self.check(progress) }
    }

    private static func check(_ progress: TaskProgress) throws(BrokenPromise) {
        let counts = 0...BackgroundTaskProgress.unitsMax
        let areCounts = counts.contains(progress.completed) && counts.contains(progress.total)
        try promise(areCounts, "counts are past their bound")
        let length = progress.subtitle?.utf8.count ?? 1
        try promise((1...TaskProgress.textBytesMax).contains(length), "a text has \(length) bytes")
    }

    /// Returns the newest report and the first fault of all pieces.
    private static func reading(_ bytes: [UInt8], pieceBytes: Int) -> ProgressLines.Reading {
        var lines = ProgressLines()
        var whole = ProgressLines.Reading()
        for start in stride(from: 0, to: bytes.count, by: pieceBytes) {
            let reading = lines.received(bytes[start..<min(start + pieceBytes, bytes.count)])
            whole.newest = reading.newest ?? whole.newest
            whole.fault = whole.fault ?? reading.fault
        }
        return whole
    }

    /// Returns the newest report and the first fault, read line by line. Bytes after the last line feed are not a line.
    private static func expected(_ bytes: [UInt8]) -> ProgressLines.Reading {
        var whole = ProgressLines.Reading()
        let lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).dropLast()
        for line in lines where !line.isEmpty {
            let isShort = line.count <= ProgressLines.lineBytesMax
            if isShort, let progress = TaskProgress(line: Array(line)) {
                whole.newest = progress
            } else if whole.fault == nil {
                whole.fault = Array(line.prefix(ProgressLines.lineBytesMax))
            }
        }
        return whole
    }
}
