package site

import (
	"cmp"
	"encoding/hex"
	"strings"
)

// byContent begins the stamp of an image that is known by what is in its file: on sites with other
// hosts, whoever has a copy of the file has the same image.
const byContent = "sha256:"

// ContentStamp makes a stamp of the digest of a file, in hexadecimal.
func ContentStamp(digest string) string { return byContent + digest }

// Content returns the digest of the file from which the image is imported; "": it is known by its
// path and its time of change, or is not imported.
func (i *Image) Content() string {
	digest, ok := strings.CutPrefix(i.Stamp, byContent)
	if b, err := hex.DecodeString(digest); !ok || err != nil || len(b) != 32 || strings.ToLower(digest) != digest {
		return ""
	}
	return digest
}

// File returns the file from which the image is imported; "": it is not.
func (i *Image) File() string { return cmp.Or(i.From, i.Import) }

// Recipe says what is imported, so that something else is another image.
func (i *Image) Recipe() string {
	if i.Content() != "" {
		return i.Stamp
	}
	return i.Import + " " + i.Stamp
}
