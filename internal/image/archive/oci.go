package archive

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"runtime"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"orrery/internal/problem"
	"orrery/internal/tree"
)

// maxJSONBytes limits an index, a manifest or a configuration of an image. The specification
// requires registries to accept 4 MiB.
const maxJSONBytes = 4 << 20

// imageReader is a directory with images: an OCI layout, or the unpacked output of `docker save`. It
// is not trusted, so the digest of every blob is verified.
type imageReader struct {
	root *tree.Root
	seen int // number of entries in indexes
}

// unpackImages unpacks the image for this machine's architecture from such a directory.
func unpackImages(ctx context.Context, from, dir string, b *bounds) error {
	root, err := tree.Open(from)
	if err != nil {
		return err
	}
	defer root.Close()
	in := &imageReader{root: root}
	layers, err := in.layoutLayers()
	if errors.Is(err, fs.ErrNotExist) {
		layers, err = in.savedLayers()
	}
	if err != nil {
		return err
	}
	return in.unpack(ctx, layers, dir, b)
}

// layerFile is a layer's file.
type layerFile struct {
	name   string
	digest string // of the file, or "" if unknown
	plain  string // of its decompressed content, or "" if unknown
}

// layoutLayers returns the layers of the image in an OCI layout.
func (in *imageReader) layoutLayers() ([]layerFile, error) {
	text, err := in.root.ReadFile("index.json", maxJSONBytes)
	if err != nil {
		return nil, err
	}
	m, err := in.chooseManifest(text, 0)
	if err != nil {
		return nil, err
	}
	var all []layerFile
	for _, d := range m.Layers {
		name, err := blobName(d.Digest)
		if err != nil {
			return nil, err
		}
		all = append(all, layerFile{name: name, digest: d.Digest.Hex})
	}
	return all, nil
}

func blobName(d v1.Hash) (string, error) {
	if d.Algorithm != "sha256" || len(d.Hex) != 2*sha256.Size || strings.Trim(d.Hex, "0123456789abcdef") != "" {
		return "", fmt.Errorf("%q is not a SHA-256 digest", d.String())
	}
	return "blobs/sha256/" + d.Hex, nil
}

// blob reads a blob that an index or manifest names.
func (in *imageReader) blob(d v1.Hash) ([]byte, error) {
	name, err := blobName(d)
	if err != nil {
		return nil, err
	}
	text, err := in.root.ReadFile(name, maxJSONBytes)
	if err == nil && digestOfBytes(text) != d.Hex {
		err = errDigestMismatch(name)
	}
	return text, err
}

func errDigestMismatch(name string) error {
	return fmt.Errorf("%s is damaged: its digest does not match", name)
}

func digestOfBytes(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// chooseManifest returns the manifest of the image for this machine from an index, which may have others.
func (in *imageReader) chooseManifest(text []byte, depth int) (*v1.Manifest, error) {
	index, err := v1.ParseIndexManifest(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	if in.seen += len(index.Manifests); depth > 4 || in.seen > 1000 {
		return nil, fmt.Errorf("its indexes are nested too deeply, or too many")
	}
	var others []string
	var found []*v1.Manifest
	for _, d := range index.Manifests {
		if !d.MediaType.IsIndex() && !d.MediaType.IsImage() {
			continue // a signature or an attestation
		}
		if p := d.Platform; d.MediaType.IsImage() && p != nil && p.Architecture != "" &&
			(p.Architecture != runtime.GOARCH || p.OS != "linux") {
			others = append(others, p.String())
			continue
		}
		text, err := in.blob(d.Digest)
		if err != nil {
			return nil, err
		}
		var m *v1.Manifest
		if d.MediaType.IsIndex() {
			m, err = in.chooseManifest(text, depth+1)
		} else {
			m, err = v1.ParseManifest(bytes.NewReader(text))
		}
		if err != nil {
			return nil, err
		}
		found = append(found, m)
	}
	if len(found) == 0 {
		return nil, problem.New(problem.Mistake, "import: the archive has no image for linux/%s, only %q", runtime.GOARCH,
			orNone(others)).
			Try("export the image for this machine's processor")
	}
	if len(found) > 1 {
		return nil, severalImages(len(found))
	}
	return found[0], nil
}

func severalImages(n int) error {
	return problem.New(problem.Mistake, "import: the archive has %d images", n).
		Try("export one image only, such as with `skopeo copy docker://NAME oci-archive:FILE`")
}

func orNone(words []string) string {
	if len(words) == 0 {
		return "none"
	}
	return strings.Join(words, ", ")
}

// savedLayers returns the layers of the image in the output of `docker save`.
func (in *imageReader) savedLayers() ([]layerFile, error) {
	text, err := in.root.ReadFile("manifest.json", maxJSONBytes)
	if err != nil {
		return nil, fmt.Errorf("no image: %w", err)
	}
	var manifests []struct {
		Config string
		Layers []string
	}
	if err := json.Unmarshal(text, &manifests); err != nil {
		return nil, fmt.Errorf("manifest.json: %w", err)
	}
	if len(manifests) != 1 {
		return nil, severalImages(len(manifests))
	}
	m := manifests[0]
	if text, err = in.root.ReadFile(m.Config, maxJSONBytes); err != nil {
		return nil, err
	}
	config, err := v1.ParseConfigFile(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	if len(config.RootFS.DiffIDs) != len(m.Layers) {
		return nil, fmt.Errorf("it has %d layers, but its configuration lists %d", len(m.Layers), len(config.RootFS.DiffIDs))
	}
	var all []layerFile
	for i, name := range m.Layers {
		all = append(all, layerFile{name: name, plain: config.RootFS.DiffIDs[i].Hex})
	}
	return all, nil
}

// unpack extracts the layers of an image on top of each other.
func (in *imageReader) unpack(ctx context.Context, layers []layerFile, dir string, b *bounds) error {
	x, err := newExtractor(dir, true, b)
	if err != nil {
		return err
	}
	defer x.close()
	for i, l := range layers {
		x.nextLayer()
		if err := in.layer(ctx, l, x, b); err != nil {
			return fmt.Errorf("layer %d: %w", i+1, err)
		}
	}
	return x.finish()
}

// layer extracts a layer and then verifies its digests.
func (in *imageReader) layer(ctx context.Context, l layerFile, x *extractor, b *bounds) error {
	f, err := in.root.OpenFile(l.name)
	if err != nil {
		return err
	}
	defer f.Close()
	file, plain := sha256.New(), sha256.New()
	raw := io.TeeReader(f, file)
	content, err := decompress(ctx, raw)
	if err != nil {
		return err
	}
	from := io.TeeReader(b.reader(ctx, content), plain)
	err = entries(from, b, x.entry)
	if err == nil {
		_, err = io.Copy(io.Discard, from) // the padding after an archive is part of its digest
	}
	if closing := content.Close(); err == nil {
		err = closing
	}
	if err == nil {
		_, err = io.Copy(io.Discard, raw)
	}
	if err != nil {
		return err
	}
	if got := sum(file); l.digest != "" && got != l.digest {
		return errDigestMismatch(l.digest)
	}
	if got := sum(plain); l.plain != "" && got != l.plain {
		return errDigestMismatch(l.plain)
	}
	return nil
}

func sum(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil)) }
