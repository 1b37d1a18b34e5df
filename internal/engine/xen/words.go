package xen

import (
	"io"
	"os"

	"orrery/internal/text/sanitize"
)

// The prefixes of the logs in which Xen's programs record the output of guests, if enabled, and of
// device models.
const (
	consoleLogPrefix = "/var/log/xen/console/guest-"
	modelLogPrefix   = "/var/log/xen/qemu-dm-"
)

// lastLines returns the last lines that a guest has printed on its console, under a heading.
func lastLines(domain string) string {
	text := logTail(consoleLogPrefix + domain + ".log")
	if text == "" {
		return "its output is not kept: set XENCONSOLED_TRACE=guest in /etc/default/xen to keep it"
	}
	return "the last lines of its console:\n" + text
}

// modelLog returns the last lines that a device model has printed, under a heading, or "" if none.
func modelLog(domain string) string {
	text := logTail(modelLogPrefix + domain + ".log")
	if text == "" {
		return ""
	}
	return "the last lines of its QEMU:\n" + text
}

// logTail returns the last lines of a log. They are sanitized, because a guest controls its contents.
func logTail(path string) string {
	text, err := readTail(path, 4<<10)
	if err != nil {
		return ""
	}
	return sanitize.LastLines(text)
}

// readTail returns at most the last most bytes of a file.
func readTail(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > most {
		_, _ = f.Seek(-most, io.SeekEnd)
	}
	return io.ReadAll(io.LimitReader(f, most))
}
