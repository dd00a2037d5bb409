import Foundation
import Wire

/// The target that the environment variable names. It is used as long as the program runs.
private let target: FuzzTarget = {
    let name = ProcessInfo.processInfo.environment["WAKEGATE_FUZZ_TARGET"] ?? ""
    guard let target = FuzzTarget.all.first(where: { $0.name == name }) else {
        let names = FuzzTarget.all.map(\.name).joined(separator: ", ")
        say("WAKEGATE_FUZZ_TARGET is \"\(name)\"; set it to one of \(names)")
        exit(64)
    }
    return target
}()

/// libFuzzer calls this function with every input. It keeps an input that ends the process.
@c(LLVMFuzzerTestOneInput)
package func testOneInput(_ bytes: UnsafePointer<UInt8>?, _ count: Int) -> Int32 {
    let view = unsafe ByteView(UnsafeRawBufferPointer(start: bytes, count: count))
    do throws(BrokenPromise) {
        try target.check(view)
    } catch {
        say("\(target.name): \(error)")
        abort()
    }
    return 0
}

private func say(_ line: String) {
    FileHandle.standardError.write(Data("\(line)\n".utf8))
}
