package secret

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/secretspec"
)

// Generate returns a new random value of a generated secret of a node, or of all nodes if node is "", in the form
// in which hosts store it.
func (k *Keyring) Generate(x *site.Secret, node string) (string, error) {
	switch x.Format {
	case secretspec.SSH:
		return sshKey(secretspec.Name(x, node))
	case secretspec.X509:
		return k.certificate(node)
	}
	return random(x), nil
}

// certificate returns a new key and certificate of a node.
func (k *Keyring) certificate(node string) (string, error) {
	now := k.Time()
	a, err := currentAuthority(k.dirs, k.sites[0].Key(), now)
	if err != nil {
		return "", err
	}
	for _, s := range k.sites {
		if n, ok := s.Node(node); ok {
			return a.issue(n, s.Name, now)
		}
	}
	return "", problem.New(problem.Surprise, "node %s is not declared, so it gets no certificate", node)
}

// Authority returns the certificate authority of the site, or fs.ErrNotExist if this machine does not have it.
func (k *Keyring) Authority() (*Authority, error) { return OpenAuthority(k.dirs, k.sites[0].Key()) }

// Time returns the time at which certificates begin to be valid.
func (k *Keyring) Time() time.Time {
	if k.Now != nil {
		return k.Now()
	}
	return time.Now()
}

// random returns a new random value of a secret that is not PEM.
func random(x *site.Secret) string {
	switch x.Format {
	case secretspec.Hex:
		return hex.EncodeToString(randomBytes(x.Generate))
	case secretspec.Base64:
		return base64.StdEncoding.EncodeToString(randomBytes(x.Generate))
	case secretspec.UUID:
		return randomUUID()
	case secretspec.CephX:
		return cephKey(time.Now(), randomBytes(cephKeyBytes))
	}
	return Random(x.Generate)
}

func randomBytes(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // it never fails
	return b
}

// randomUUID returns a UUID of version 4 (RFC 9562).
func randomUUID() string {
	b := randomBytes(16)
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80 // version and variant
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// A key of CephX is, in little-endian order, its type (1: AES), the time when it was made in seconds and
// nanoseconds, the number of bytes that follow, and these bytes.
const (
	cephKeyType   = 1
	cephKeyBytes  = 16
	cephKeyHeader = 2 + 4 + 4 + 2
)

// cephKey returns a key in the form in which Ceph's keyrings have it.
func cephKey(made time.Time, key []byte) string {
	var b []byte
	b = binary.LittleEndian.AppendUint16(b, cephKeyType)
	b = binary.LittleEndian.AppendUint32(b, uint32(made.Unix()))
	b = binary.LittleEndian.AppendUint32(b, uint32(made.Nanosecond()))
	b = binary.LittleEndian.AppendUint16(b, uint16(len(key)))
	return base64.StdEncoding.EncodeToString(append(b, key...))
}

// maxStoredBytes is the maximum length of a generated secret in the form in which hosts store it.
const maxStoredBytes = 16 << 10

// ValidGenerated reports whether value may be a result of Generate. Use it to check a value from another host
// whose format is unknown.
func ValidGenerated(value string) bool {
	return value != "" && len(value) <= maxStoredBytes &&
		strings.Trim(strings.TrimPrefix(value, pemPrefix), alphabet+"+/=-") == ""
}

// HasFormat returns a problem if value is not of the format that a secret declares.
func HasFormat(x *site.Secret, value string) error {
	ok := false
	switch x.Format {
	case "":
		ok = value != "" && !strings.HasPrefix(value, pemPrefix) // it may have been edited on the host
	case secretspec.Hex:
		b, err := hex.DecodeString(value)
		ok = err == nil && len(b) > 0 && value == strings.ToLower(value)
	case secretspec.Base64:
		b, err := base64.StdEncoding.Strict().DecodeString(value)
		ok = err == nil && len(b) > 0
	case secretspec.UUID:
		ok = isUUID(value)
	case secretspec.CephX:
		ok = isCephKey(value)
	case secretspec.SSH:
		ok = isSSHKey(value)
	case secretspec.X509:
		ok = Stored{Value: value}.IsCertificate()
	}
	if !ok {
		return problem.New(problem.Surprise, "secret %s: the stored value is not in the format %q", x.Name, x.Format).
			Try("orrery secret rotate %s makes a new value", x.Name)
	}
	return nil
}

func isUUID(value string) bool {
	parts := strings.Split(value, "-")
	if len(parts) != 5 {
		return false
	}
	for i, n := range []int{4, 2, 2, 2, 6} {
		if b, err := hex.DecodeString(parts[i]); err != nil || len(b) != n {
			return false
		}
	}
	return value == strings.ToLower(value)
}

func isCephKey(value string) bool {
	b, err := base64.StdEncoding.Strict().DecodeString(value)
	return err == nil && len(b) == cephKeyHeader+cephKeyBytes && binary.LittleEndian.Uint16(b) == cephKeyType &&
		binary.LittleEndian.Uint16(b[cephKeyHeader-2:]) == cephKeyBytes
}
