package hosts

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"sync"

	"orrery/internal/image/imported"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// imageHashMutex is held while images get their digests, because sites derived from a site share its
// images.
var imageHashMutex sync.Mutex

// hashImages sets the digests of the imported images of a site, so that images are identified by
// content. It returns the files by digest.
func hashImages(ctx context.Context, s *site.Site) (files map[string]string, err error) {
	imageHashMutex.Lock()
	defer imageHashMutex.Unlock()
	files = map[string]string{}
	for i := range s.Images {
		img := &s.Images[i]
		file := img.SourceFile()
		if !filepath.IsAbs(file) || img.Remote {
			continue // an image of a release, whose digest the hosts have on record
		}
		digest := img.ContentDigest()
		if digest == "" {
			digest, err = imported.UserCache().Digest(ctx, file)
			switch {
			case ctx.Err() != nil:
				return nil, context.Cause(ctx)
			case errors.Is(err, fs.ErrPermission): // a user who may not read the file builds nothing
				continue
			case problem.Is(err, problem.Surprise):
				return nil, err
			case err != nil:
				return nil, problem.New(problem.Failed, "import %s: it cannot be read", file).Because(problem.PathErrorCause(err)).
					At("site.toml").Try("correct `import` of image %s", img.Name)
			}
			img.Stamp = site.ContentStamp(digest)
		}
		files[digest] = file
	}
	return files, ctx.Err()
}
