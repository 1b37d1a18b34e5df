package xl

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"orrery/internal/text/sanitize"
)

// savedHeader is the beginning of a file of `xl save` (struct save_file_header of xl.h). The
// domain's configuration follows. The rest of the file belongs to libxl.
type savedHeader struct {
	Magic     [32]byte
	ByteOrder uint32
	Mandatory uint32
	Optional  uint32
	Length    uint32 // bytes of the configuration that follows
}

const (
	savedMagic = "Xen saved domain, xl format\n \x00 \r"
	savedOrder = 0x01020304
)

// Features that the reader of such a file must know (XL_MANDATORY_FLAG_JSON,
// XL_MANDATORY_FLAG_STREAMv2).
const (
	savedJSON = 1 << iota
	savedStream2
)

// maxConfigBytes limits the size of the configuration in a file.
const maxConfigBytes = 1 << 20

// ParseSaved returns the configuration of the domain whose state a file of `xl save` contains. It
// checks only the beginning of the file.
func ParseSaved(in io.Reader) (*Details, error) {
	bad := errors.New("it is not a state saved by xl")
	var h savedHeader
	if err := binary.Read(in, binary.LittleEndian, &h); err != nil || string(h.Magic[:]) != savedMagic {
		return nil, bad
	}
	switch {
	case h.ByteOrder != savedOrder:
		return nil, errors.New("it was saved on another kind of machine")
	case h.Mandatory&^(savedJSON|savedStream2) != 0:
		return nil, fmt.Errorf("it was saved by an unknown version of xl (%#x)", h.Mandatory)
	case h.Mandatory&savedStream2 == 0 || h.Mandatory&savedJSON == 0:
		return nil, errors.New("it was saved by a version of xl that is too old")
	case h.Length < 4 || h.Length > maxConfigBytes:
		return nil, bad
	}
	text := make([]byte, h.Length)
	if _, err := io.ReadFull(in, text); err != nil {
		return nil, errors.New("it is cut short")
	}
	length := binary.LittleEndian.Uint32(text)
	if length > h.Length-4 {
		return nil, bad
	}
	config := bytes.TrimRight(text[4:4+length], "\x00")
	all, err := ParseDetails(fmt.Appendf(nil, `{"config":%s}`, config))
	if err != nil || !json.Valid(config) || len(all) != 1 || all[0].Name == "" {
		return nil, errors.New("its domain configuration is invalid")
	}
	return &all[0], nil
}

// MonitorSocket returns the path of the QMP socket at which a domain's QEMU listens for libxl.
func MonitorSocket(ctx context.Context, domain string) (string, error) {
	id, err := DomainID(ctx, domain)
	return fmt.Sprintf("/var/run/xen/qmp-libxl-%d", id), err
}

// DomainID returns the current ID of a domain.
func DomainID(ctx context.Context, domain string) (id int, err error) {
	text, err := Output(ctx, "domid", domain)
	if err != nil {
		return 0, err
	}
	if word := strings.TrimSpace(string(text)); number(word, &id) != nil || id < 0 {
		return 0, unexpected(sanitize.Line(word))
	}
	return id, nil
}
