package xen

import (
	"io"
	"os"

	"orrery/internal/text/sanitize"
)

// Where Xen's own programs write what guests print, if they are told to, and what a device model does.
const (
	consoles = "/var/log/xen/console/guest-"
	models   = "/var/log/xen/qemu-dm-"
)

// lastWords are the last lines that a guest has printed on its console.
func lastWords(domain string) string {
	text := end(consoles + domain + ".log")
	if text == "" {
		return "what it printed is not kept: XENCONSOLED_TRACE=guest in /etc/default/xen has that done"
	}
	return "the last lines of its console:\n" + text
}

// modelLog are the last lines of what a device model has printed.
func modelLog(domain string) string {
	text := end(models + domain + ".log")
	if text == "" {
		return ""
	}
	return "the last lines of its QEMU:\n" + text
}

// end returns the last lines of a log of root's, whose words are a guest's.
func end(path string) string {
	text, err := last(path, 4<<10)
	if err != nil {
		return ""
	}
	return sanitize.LastLines(text)
}

// last returns the last bytes of a file.
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
