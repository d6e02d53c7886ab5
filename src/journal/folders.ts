/**
 * The folders of the archive, made durable before anything is put into them: a file whose folder vanishes in a
 * power cut is lost, however often the file itself was fsynced.
 */
import { dirname, join } from 'node:path';
import { platformCode } from './errors.js';
import type { FileLayer } from './files.js';
import type { DataFolder } from './folder.js';

export class ArchiveFolders {
  readonly #folder: DataFolder;
  readonly #files: FileLayer;
  /**
   * Folders this process has seen to be durable. One that is merely there is not enough: a process that died
   * between mkdir and fsync leaves such a folder. So each is fsynced once per process.
   */
  readonly #durable = new Set<string>();

  constructor(folder: DataFolder, files: FileLayer) {
    this.#folder = folder;
    this.#files = files;
  }

  /** Makes `archive/` and `archive/incoming/`. */
  ensureIncoming(): void {
    this.#ensure(this.#folder.archive);
    this.#ensure(this.#folder.incoming);
  }

  /** Makes the day folder of an archive path and gives its full path. */
  ensureFor(archivePath: string): string {
    let path = this.#folder.archive;
    for (const part of archivePath.split('/').slice(0, -1)) {
      path = join(path, part);
      this.#ensure(path);
    }
    return path;
  }

  /** After a failure nothing is taken for granted: somebody may have removed folders under us. */
  forget(): void {
    this.#durable.clear();
  }

  #ensure(path: string): void {
    if (this.#durable.has(path)) return;
    try {
      this.#files.mkdir(path);
    } catch (error) {
      if (platformCode(error) !== 'EEXIST') throw error;
    }
    this.#files.fsyncDirectory(path);
    this.#files.fsyncDirectory(dirname(path));
    this.#durable.add(path);
  }
}
