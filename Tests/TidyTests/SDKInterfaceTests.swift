import Foundation
import Testing

@Suite("The interfaces of the SDK")
struct SDKInterfaceTests {
    /// A public module.
    struct Module: CustomTestStringConvertible, Sendable {
        let testDescription: String
        let publicDeclarationsMin: Int

        static let all = [
            Module(testDescription: "BackgroundTransfers", publicDeclarationsMin: 100),
            Module(testDescription: "WakeWorker", publicDeclarationsMin: 60),
            Module(testDescription: "WakeWorkerTesting", publicDeclarationsMin: 20),
        ]
    }

    @Test(
        "Every public declaration is documented, and each throwing function says what it throws",
        arguments: Module.all
    )
    func documented(module: Module) throws {
        let files = try Repository.sources().filter { $0.path.hasPrefix("Sources/SDK/\(module.testDescription)/") }
        var declarations = 0
        for file in files {
            let lines = file.lines
            for (index, line) in lines.enumerated() where line.drop(while: { $0 == " " }).hasPrefix("public ") {
                if line.hasPrefix("public import ") { continue }
                declarations += 1
                var above = index - 1
                if lines[above].trimmingCharacters(in: .whitespaces) == ")" {
                    // An attribute with several lines.
                    while above > 0, !lines[above].contains("@available(") { above -= 1 }
                }
                while above >= 0, lines[above].drop(while: { $0 == " " }).hasPrefix("@") { above -= 1 }
                let place = "\(file.path):\(index + 1)"
                #expect(lines[above].contains("///"), "\(place) is not documented")
                var comment = ""
                while above >= 0, lines[above].contains("///") {
                    comment += lines[above]
                    above -= 1
                }
                var head = index
                while head < lines.count - 1, !lines[head].hasSuffix("{") { head += 1 }
                guard lines[index].contains("func ") || lines[index].contains("init(") else { continue }
                let signature = lines[index...head].joined(separator: " ")
                let signatureThrows = signature.contains(") throws") || signature.contains("async throws(")
                if signatureThrows { #expect(comment.contains("- Throws:"), "\(place) does not say what it throws") }
            }
        }
        #expect(declarations > module.publicDeclarationsMin)
    }
}
