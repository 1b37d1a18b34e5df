package xen

import (
	"io"
	"os"

	"orrery/internal/text/sanitize"
)

// The prefixes of the logs in which Xen's programs record the output of guests, if enabled, and of
// device models.
const (
	consoles = "/var/log/xen/console/guest-"
	models   = "/var/log/xen/qemu-dm-"
)

// lastWords returns the last lines that a guest has printed on its console, under a heading.
func lastWords(domain string) string {
	text := end(consoles + domain + ".log")
	if text == "" {
		return "what it printed is not kept: XENCONSOLED_TRACE=guest in /etc/default/xen has that done"
	}
	return "the last lines of its console:\n" + text
}

// modelLog returns the last lines that a device model has printed, under a heading, or "" if none.
func modelLog(domain string) string {
	text := end(models + domain + ".log")
	if text == "" {
		return ""
	}
	return "the last lines of its QEMU:\n" + text
}

// end returns the last lines of a log. They are sanitized, because a guest controls its contents.
func end(path string) string {
	text, err := last(path, 4<<10)
	if err != nil {
		return ""
	}
	return sanitize.LastLines(text)
}

// last returns at most the last most bytes of a file.
func last(path string, most int64) ([]byte, error) {
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
