/**
 * The file operations the journal's promises rest on, as a value that is passed in: a test can count them, put
 * them in order and make each of them fail, without a switch in the program itself.
 *
 * A rename or a new file is durable only when its *directory* was fsynced too; a new directory only when its
 * parent was. Everything inside the commit section is synchronous, because nothing may come between; only the
 * upload, which takes as long as the phone takes, writes through promises.
 */
import {
  closeSync,
  fstatSync,
  fsync,
  fsyncSync,
  mkdirSync,
  open as openFile,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  statSync,
  unlinkSync,
  writeSync,
} from 'node:fs';
import { open } from 'node:fs/promises';
import { promisify } from 'node:util';

/** A file being written by an upload. */
export interface UploadFile {
  /** Writes all of `bytes`; a disk that fills half-way is an error, never a short write. */
  write(bytes: Uint8Array): Promise<void>;
  fsync(): Promise<void>;
  close(): Promise<void>;
}

export interface FileLayer {
  /** Makes one directory; EEXIST when it is there. */
  mkdir(path: string): void;
  rename(from: string, to: string): void;
  fsyncDirectory(path: string): void;
  /** Of a file that somebody else has written and closed. */
  fsyncFile(path: string): void;
  unlink(path: string): void;
  /** The names in a directory, unordered. */
  readdir(path: string): string[];
  /** When a directory was changed last, milliseconds since 1970 with a fraction. */
  modifiedAtMs(path: string): number;
  /** Appends one line and fsyncs the file; a last line torn by a crash is closed first, never continued. */
  appendLine(path: string, line: string): void;
  /**
   * Creates a file that must not exist yet.
   * @param small it takes a few kilobytes: what need not wait for the disk is then done at once, because handing a
   *   step to another thread costs more than such a step
   */
  createUpload(path: string, small: boolean): Promise<UploadFile>;
}

function writeWhole(fd: number, bytes: Uint8Array): void {
  for (let offset = 0; offset < bytes.length; ) offset += writeSync(fd, bytes, offset);
}

const LINE_END = 0x0a;

function endsInsideLine(fd: number): boolean {
  const { size } = fstatSync(fd);
  if (size === 0) return false;
  const last = Buffer.alloc(1);
  readSync(fd, last, 0, 1, size - 1);
  return last[0] !== LINE_END;
}

const flush = promisify(fsync);
const openElsewhere = promisify(openFile);

/** Uploads that are being flushed right now. */
let flushing = 0;

async function smallUpload(path: string): Promise<UploadFile> {
  // While the file system flushes, making a file waits for its journal, and nothing else should wait with it.
  const fd = flushing === 0 ? openSync(path, 'wx') : await openElsewhere(path, 'wx');
  return {
    write: async (bytes) => writeWhole(fd, bytes),
    fsync: async () => {
      flushing += 1;
      try {
        await flush(fd);
      } finally {
        flushing -= 1;
      }
    },
    close: async () => closeSync(fd),
  };
}

async function largeUpload(path: string): Promise<UploadFile> {
  const handle = await open(path, 'wx');
  return {
    write: async (bytes) => {
      for (let offset = 0; offset < bytes.length; ) {
        const { bytesWritten } = await handle.write(bytes, offset);
        offset += bytesWritten;
      }
    },
    fsync: () => handle.sync(),
    close: () => handle.close(),
  };
}

function fsyncPath(path: string): void {
  const fd = openSync(path, 'r');
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

/** The real disk. */
export const nodeFiles: FileLayer = {
  mkdir: (path) => {
    mkdirSync(path);
  },
  rename: renameSync,
  fsyncDirectory: fsyncPath,
  fsyncFile: fsyncPath,
  unlink: unlinkSync,
  readdir: (path) => readdirSync(path),
  modifiedAtMs: (path) => statSync(path).mtimeMs,
  appendLine: (path, line) => {
    const fd = openSync(path, 'a+', 0o600);
    try {
      writeWhole(fd, Buffer.from(`${endsInsideLine(fd) ? '\n' : ''}${line}\n`));
      fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
  },
  createUpload: async (path, small) => (small ? smallUpload(path) : largeUpload(path)),
};
