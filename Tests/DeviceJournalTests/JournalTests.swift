import DeviceJournal
import Testing
