package image

import (
	"context"
	"fmt"
	"runtime"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"orrery/internal/problem"
)

// unpackLayout makes a tree of the image in an OCI layout directory.
func unpackLayout(ctx context.Context, dir, tree string) error {
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return fmt.Errorf("no OCI layout: %w", err)
	}
	img, err := choose(index, 0)
	if err != nil {
		return err
	}
	return unpackImage(ctx, img, tree)
}

func unpackDocker(ctx context.Context, file, tree string) error {
	img, err := tarball.ImageFromPath(file, nil)
	if err != nil {
		return fmt.Errorf("no image archive: %w", err)
	}
	return unpackImage(ctx, img, tree)
}

// choose finds the image for this machine in an index, which may hold others.
func choose(index v1.ImageIndex, depth int) (v1.Image, error) {
	if depth > 4 {
		return nil, fmt.Errorf("indexes within indexes, deeper than makes sense")
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	var others []string
	var found []v1.Image
	for _, d := range manifest.Manifests {
		if d.MediaType.IsIndex() {
			inner, err := index.ImageIndex(d.Digest)
			if err != nil {
				return nil, err
			}
			img, err := choose(inner, depth+1)
			if err != nil {
				return nil, err
			}
			found = append(found, img)
			continue
		}
		if !d.MediaType.IsImage() {
			continue // a signature, an attestation
		}
		if p := d.Platform; p != nil && p.Architecture != "" && (p.Architecture != runtime.GOARCH || p.OS != "linux") {
			others = append(others, p.String())
			continue
		}
		img, err := index.Image(d.Digest)
		if err != nil {
			return nil, err
		}
		found = append(found, img)
	}
	if len(found) == 0 {
		return nil, problem.New(problem.Mistake, "import: it holds no image for linux/%s, only %s", runtime.GOARCH, orNone(others)).
			Try("export the image for this machine's processor")
	}
	if len(found) > 1 {
		return nil, problem.New(problem.Mistake, "import: it holds %d images", len(found)).
			Try("export one image only, such as with `skopeo copy docker://NAME oci-archive:FILE`")
	}
	return found[0], nil
}

func orNone(words []string) string {
	if len(words) == 0 {
		return "none"
	}
	return strings.Join(words, ", ")
}

// unpackImage lays the layers of an image over one another.
func unpackImage(ctx context.Context, img v1.Image, tree string) error {
	layers, err := img.Layers()
	if err != nil {
		return err
	}
	x, err := newExtractor(tree, true)
	if err != nil {
		return err
	}
	defer x.close()
	for i, layer := range layers {
		x.next()
		content, err := layer.Uncompressed()
		if err != nil {
			return fmt.Errorf("layer %d: %w", i+1, err)
		}
		err = entries(ctx, content, x.entry)
		content.Close()
		if err != nil {
			return fmt.Errorf("layer %d: %w", i+1, err)
		}
	}
	return x.finish()
}
